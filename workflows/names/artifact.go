package names

import "fmt"

// Workflow types of artifacts.
const (
	ArtifactLifecycle = "ArtifactLifecycle"
	ArtifactArchive   = "ArtifactArchive"
	JobResultDrain    = "JobResultDrain"
)

// JobResultDrainID is the workflow id of the one drain of devices' replies.
const JobResultDrainID = "job-result-drain/0"

// ScheduleArtifactArchive is the schedule of ArtifactArchive.
const ScheduleArtifactArchive = "artifact-archive"

// Search attributes of ArtifactLifecycle, all of type Keyword. A namespace must
// have them before artifacts run there.
const (
	ArtifactIDAttribute     = "MillraceArtifactId"
	ArtifactStateAttribute  = "MillraceArtifactState"
	ArtifactKindAttribute   = "MillraceArtifactKind"
	ArtifactAuthorAttribute = "MillraceArtifactAuthor"
)

// ArtifactAttributes are the search attributes of ArtifactLifecycle.
func ArtifactAttributes() []string {
	return []string{ArtifactIDAttribute, ArtifactStateAttribute, ArtifactKindAttribute, ArtifactAuthorAttribute}
}

// ArtifactLifecycleID is the workflow id of a version of an artifact.
func ArtifactLifecycleID(artifactID string, version int) string {
	return fmt.Sprintf("artifact/%s/v%d", artifactID, version)
}
