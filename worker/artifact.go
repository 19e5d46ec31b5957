package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/artifact"
	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// artifactSettings are those of the artifact capability.
type artifactSettings struct {
	ArtifactBucket   string        `help:"Bucket of artifacts; empty takes the bucket of all objects." env:"MILLRACE_ARTIFACT_BUCKET"`
	AllowUnverified  bool          `name:"artifact-allow-unverified" help:"Take commands for which neither a gateway nor an approver's key vouches; for development only." env:"MILLRACE_ARTIFACT_ALLOW_UNVERIFIED"`
	GatewayKeys      []string      `name:"gateway-public-keys" sep:";" help:"Public keys of the gateways as in authorized_keys, separated by semicolons." env:"MILLRACE_GATEWAY_PUBLIC_KEYS" placeholder:"KEY"`
	Floors           string        `name:"artifact-floors" help:"Least that policies must ask for, as JSON by kind: {\"script\":{\"required\":2,\"separation_of_duties\":true,\"within\":[\"ops\"],\"signed_decisions\":true}}." default:"{}" env:"MILLRACE_ARTIFACT_FLOORS"`
	ArchiveAfter     time.Duration `name:"artifact-archive-after" help:"How long a settled version stays before it archives itself." default:"720h" env:"MILLRACE_ARTIFACT_ARCHIVE_AFTER"`
	SearchAttributes bool          `name:"artifact-search-attributes" help:"Set search attributes; the namespace must have MillraceArtifactId, MillraceArtifactState, MillraceArtifactKind and MillraceArtifactAuthor as keywords." env:"MILLRACE_ARTIFACT_SEARCH_ATTRIBUTES"`
	HTTPHosts        []string      `name:"artifact-http-hosts" help:"Hosts to which artifacts of the kind http may send requests; none by default." env:"MILLRACE_ARTIFACT_HTTP_HOSTS"`
	HTTPPrivate      bool          `name:"artifact-http-allow-private" help:"Let these hosts have private and loopback addresses; for development only." env:"MILLRACE_ARTIFACT_HTTP_ALLOW_PRIVATE"`
	ScriptUser       uint32        `help:"User id that scripts run under; 0 keeps the worker's own, for development." env:"MILLRACE_SCRIPT_USER"`
	ScriptGroup      uint32        `help:"Group id that scripts run under." env:"MILLRACE_SCRIPT_GROUP"`
	ScriptProcesses  int           `help:"How many processes the user of scripts may have, and each script where it has a cgroup that bounds them." default:"1024" env:"MILLRACE_SCRIPT_PROCESSES"`
	ScriptCgroup     string        `help:"Cgroup (v2) in which a worker may make one for each script, with pids and memory; empty tries for one below the worker's own, none makes none." env:"MILLRACE_SCRIPT_CGROUP" placeholder:"DIR"`
	ScriptsAtOnce    int           `help:"How many scripts this worker runs at a time; the others wait in the task queue." default:"8" env:"MILLRACE_SCRIPTS_AT_ONCE"`
}

const minArchiveAfter = time.Minute

// runLeave is how long a run that a stopping worker ends has to end and to be told
// of.
const runLeave = 20 * time.Second

func (s artifactSettings) check() error {
	var problems []error
	if s.ArchiveAfter < minArchiveAfter {
		problems = append(problems, fmt.Errorf("MILLRACE_ARTIFACT_ARCHIVE_AFTER: must be at least %s", minArchiveAfter))
	}
	if _, err := s.floors(); err != nil {
		problems = append(problems, fmt.Errorf("MILLRACE_ARTIFACT_FLOORS: %w", err))
	}
	for _, key := range s.GatewayKeys {
		if _, err := artifact.ParseKey(key); err != nil {
			problems = append(problems, fmt.Errorf("MILLRACE_GATEWAY_PUBLIC_KEYS: %w", err))
		}
	}
	if s.ScriptsAtOnce < 1 {
		problems = append(problems, errors.New("MILLRACE_SCRIPTS_AT_ONCE: must be at least 1"))
	}
	if s.ScriptProcesses < 1 {
		problems = append(problems, errors.New("MILLRACE_SCRIPT_PROCESSES: must be at least 1"))
	}
	if s.ScriptCgroup != "" && s.ScriptCgroup != "none" && !filepath.IsAbs(s.ScriptCgroup) {
		problems = append(problems, errors.New("MILLRACE_SCRIPT_CGROUP: must be an absolute path, none or empty"))
	}
	if (s.ScriptUser == 0) != (s.ScriptGroup == 0) {
		problems = append(problems, errors.New("MILLRACE_SCRIPT_USER, MILLRACE_SCRIPT_GROUP: must be set together"))
	}
	return errors.Join(problems...)
}

func (s artifactSettings) floors() (map[artifact.Kind]artifact.Floor, error) {
	decoder := json.NewDecoder(strings.NewReader(s.Floors))
	decoder.DisallowUnknownFields()
	var floors map[artifact.Kind]artifact.Floor
	if err := decoder.Decode(&floors); err != nil {
		return nil, fmt.Errorf("must be JSON by kind: %w", err)
	}
	for kind := range floors {
		if !slices.Contains(artifact.Kinds(), kind) {
			return nil, fmt.Errorf("%q is none of %v", kind, artifact.Kinds())
		}
	}
	return floors, nil
}

func artifactStore(d dependencies) storage.Store {
	bucket := d.settings.Artifacts.ArtifactBucket
	if bucket == "" {
		bucket = d.settings.DataBucket
	}
	return storage.New(d.clients.dynamodb, d.settings.GovernanceTable, d.clients.s3, bucket)
}

// registerArtifact hosts the artifact capability; scripts run on a task queue of
// their own, which is off unless it is named.
func registerArtifact(h *host, d dependencies) {
	s, store := d.settings.Artifacts, artifactStore(d)
	floors, _ := s.floors() // the settings have been checked
	all := activities.Activities{
		Store: store, Floors: floors,
		Vouchers:  activities.Vouchers{Store: store, GatewayKeys: s.GatewayKeys, AllowUnverified: s.AllowUnverified},
		Settings:  workflows.Settings{ArchiveAfter: artifact.Duration(s.ArchiveAfter), SearchAttributes: s.SearchAttributes},
		Factories: factoryStore(d), Temporal: d.temporal, Alerts: d.alerting.observer.Raiser, Now: time.Now, Logger: d.logger,
	}
	run := func(r worker.Registry, name string, runner activities.Runner) {
		executor := activities.Executor{
			Store: store, Runner: runner, StopIn: max(0, d.settings.TaskQueues.StopTimeout-runLeave), Now: time.Now, Logger: d.logger,
		}
		r.RegisterActivityWithOptions(activities.RunActivity(executor, d.temporal), activity.RegisterOptions{Name: name})
	}
	h.on(names.QueueArtifacts, func(r worker.Registry) {
		// A lifecycle may last for months: it must not keep its build alive so long.
		r.RegisterWorkflowWithOptions(workflows.ArtifactLifecycle, workflow.RegisterOptions{
			Name: names.ArtifactLifecycle, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		})
		for name, f := range all.All() {
			r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
		}
		run(r, workflows.HTTPActivity, activities.Requests{Hosts: s.HTTPHosts, AllowPrivate: s.HTTPPrivate})
	})
	sweeper := activities.Sweeper{
		Store: store, Temporal: d.temporal, Alerts: d.alerting.observer.Raiser, ArchiveAfter: s.ArchiveAfter, Now: time.Now, Logger: d.logger,
	}
	h.on(names.QueueScheduled, func(r worker.Registry) {
		r.RegisterWorkflowWithOptions(workflows.ArtifactArchive, workflow.RegisterOptions{Name: names.ArtifactArchive})
		r.RegisterActivityWithOptions(sweeper.Sweep, activity.RegisterOptions{Name: workflows.SweepActivity})
	})
	h.on(names.QueueScripts, func(r worker.Registry) {
		if err := activities.SweepTemporary(time.Now()); err != nil {
			d.logger.Warn("what former runs left was not deleted", "error", err)
		}
		run(r, workflows.ScriptActivity, activities.Scripts{
			User: s.ScriptUser, Group: s.ScriptGroup, Processes: s.ScriptProcesses, Cgroup: s.ScriptCgroup,
		})
	})
}
