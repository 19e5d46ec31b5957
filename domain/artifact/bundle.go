package artifact

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Role says what a file is for.
type Role string

// The roles.
const (
	Primary  Role = "primary"
	Rollback Role = "rollback"
)

// File is a file of a request: its content is either given, or lies at its key
// already as a version of an object.
type File struct {
	Role          Role   `json:"role"`
	Filename      string `json:"filename"`
	ContentHash   string `json:"content_hash,omitempty"`
	ContentBase64 string `json:"content_base64,omitempty"`
	S3VersionID   string `json:"s3_version_id,omitempty"`
	Size          int64  `json:"size,omitempty"`
}

// StoredName is the file's name beside its siblings: a rollback has a prefix.
func (f File) StoredName() string {
	if f.Role == Rollback {
		return RollbackPrefix + f.Filename
	}
	return f.Filename
}

// Bounds of content.
const (
	// MaxInline bounds the content that a request itself carries.
	MaxInline = 64 << 10
	// MaxContent bounds one file.
	MaxContent = 100 << 20
	// maxObjectVersion is the longest version id that S3 gives.
	maxObjectVersion = 1024
)

// Content decodes the content that a request carries.
func (f File) Content() ([]byte, error) {
	body, err := base64.StdEncoding.DecodeString(f.ContentBase64)
	if err != nil {
		return nil, invalid("files.content_base64", "must be standard base64")
	}
	return body, nil
}

// CheckFiles refuses what is no set of one primary and at most one rollback.
func CheckFiles(files []File) error {
	roles, inline := map[Role]int{}, 0
	for _, f := range files {
		roles[f.Role]++
		inline += len(f.ContentBase64)
		if err := f.check(); err != nil {
			return err
		}
	}
	switch {
	case roles[Primary] != 1 || roles[Rollback] > 1 || len(files) != roles[Primary]+roles[Rollback]:
		return invalid("files", "must be one with the role primary and at most one with the role rollback")
	case base64.StdEncoding.DecodedLen(inline) > MaxInline+3*len(files):
		return invalid("files", "carry more than 64 KiB: upload the content first")
	}
	return nil
}

func (f File) check() error {
	if err := CheckFilename(f.Filename); err != nil {
		return err
	}
	if len(f.StoredName()) > 128 {
		return invalid("filename", "must leave room for rollback-")
	}
	if f.S3VersionID != "" && f.ContentBase64 != "" {
		return invalid("files", "must have content_base64 or s3_version_id, not both")
	}
	if len(f.S3VersionID) > maxObjectVersion {
		return invalidf("files.s3_version_id", "must be at most %d bytes", maxObjectVersion)
	}
	if f.S3VersionID != "" && f.ContentHash == "" {
		return invalid("files.content_hash", "is needed for content that was uploaded")
	}
	if f.ContentHash == "" {
		return nil
	}
	return CheckHash("files.content_hash", f.ContentHash)
}

// Rollbackable tells whether files have a rollback.
func Rollbackable(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool { return f.Role == Rollback })
}

// Hash is the hash of spec.json.
func (s Spec) Hash() (string, error) {
	canonical, err := Canonical(s)
	return HashOf(canonical), err
}

// BundleHash is the hash of what is approved: the sorted lines of file name and
// content hash over the files and spec.json.
func BundleHash(files []File, spec Spec) (string, error) {
	specHash, err := spec.Hash()
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("%s %s", SpecFile, specHash)}
	for _, f := range files {
		if err := CheckHash("files.content_hash", f.ContentHash); err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%s %s", f.StoredName(), f.ContentHash))
	}
	slices.Sort(lines)
	return HashOf([]byte(strings.Join(lines, "\n") + "\n")), nil
}

// CheckReplacement refuses a Replace that says another content than that of its
// files, or, being signed, says none: its signature would fit any files.
func (c Command) CheckReplacement(files []File, spec Spec) error {
	if c.BundleHash == "" && c.Signature == "" {
		return nil
	}
	if c.BundleHash == "" {
		return invalid("bundle_hash", "is needed in a signed replacement: that of the new content")
	}
	hashed := slices.Clone(files)
	for i, f := range files {
		if f.ContentBase64 == "" && f.ContentHash != "" {
			continue
		}
		body, err := f.Content()
		if err != nil {
			return err
		}
		hashed[i].ContentHash = HashOf(body)
	}
	bundle, err := BundleHash(hashed, spec)
	if err == nil && bundle != c.BundleHash {
		err = refuse(WhyOtherContent, "the new content is %s, not %s", bundle, c.BundleHash)
	}
	return err
}

// Request asks for a version of an artifact.
type Request struct {
	ArtifactID string `json:"artifact_id"`
	Version    int    `json:"version"`
	Author     string `json:"author"`
	Draft      bool   `json:"draft,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Spec       Spec   `json:"spec"`
	Files      []File `json:"files"`
	// Claim vouches for the author: a create command over the request's hash.
	Claim Command `json:"claim,omitzero"`
}

// Check refuses a request that breaks a rule, before anything is stored. It
// gives the request with defaults filled in.
func (r Request) Check() (Request, error) {
	r.Spec = r.Spec.withDefaults()
	for _, err := range []error{CheckID(r.ArtifactID), CheckVersion(r.Version), CheckActor("author", r.Author), r.Spec.check(), CheckFiles(r.Files), r.Spec.CheckContent(r.Files)} {
		if err != nil {
			return Request{}, err
		}
	}
	if r.Claim.Actor != "" && CheckActor("claim.actor", r.Claim.Actor) != nil {
		return Request{}, CheckActor("claim.actor", r.Claim.Actor)
	}
	if err := r.Claim.checkBounds(); err != nil {
		return Request{}, err
	}
	if len(r.Reason) > maxComment {
		return Request{}, invalidf("reason", "must be at most %d bytes", maxComment)
	}
	return r, nil
}

// Hash is the hash of everything a request asks for, which the claim's
// bundle_hash repeats. It is the same before and after Check.
func (r Request) Hash() (string, error) {
	r.Claim = Command{}
	r.Spec = r.Spec.withDefaults()
	body, err := Canonical(r)
	if err != nil {
		return "", err
	}
	return HashOf(body), nil
}
