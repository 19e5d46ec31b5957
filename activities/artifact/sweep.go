package artifact

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// Describer is the part of the Temporal client that tells whether a workflow
// runs.
type Describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Sweeper settles and archives what lifecycles that ended early did not.
type Sweeper struct {
	Store    storage.Store
	Temporal Describer
	// Alerts may be nil: then alerts are logged only.
	Alerts Alerter
	// ArchiveAfter is how long a settled version stays.
	ArchiveAfter time.Duration
	Now          func() time.Time
	Logger       *slog.Logger
}

const (
	// sweepGrace leaves a lifecycle time to archive its version itself.
	sweepGrace = 24 * time.Hour
	// coolAfter is when the files of a run move to STANDARD_IA; a lifecycle rule of
	// S3 can't do so before 30 days.
	coolAfter = 14 * 24 * time.Hour
	// coolDays is for how many days a run that was missed is made up for.
	coolDays = 3
	// clearDays is for how many days originals are looked for after archiving.
	clearDays = 7
	// orphanAge leaves an upload time to be submitted.
	orphanAge = 24 * time.Hour
	// reported is how many of a kind a report names: payloads stay small.
	reported  = 100
	sweepPage = 100
)

// Sweep does one sweep. Each step is harmless when it is done again.
func (s Sweeper) Sweep(ctx context.Context, r workflows.SweepRequest) (workflows.SweepReport, error) {
	report := workflows.SweepReport{DryRun: r.DryRun, Archived: []string{}}
	if err := s.ended(ctx, &report); err != nil {
		return report, failure(err)
	}
	for _, state := range artifact.States() {
		if !state.Settled() || state == artifact.Archived {
			continue
		}
		if err := s.each(ctx, state, func(v storage.Artifact) error { return s.version(ctx, v, &report) }); err != nil {
			return report, failure(err)
		}
	}
	if err := s.unfinished(ctx, &report); err != nil {
		return report, failure(err)
	}
	if err := s.orphans(ctx, &report); err != nil {
		return report, failure(err)
	}
	return report, failure(s.cool(ctx, &report))
}

// each walks the versions in a state. Those that leave it on the way are seen
// once.
func (s Sweeper) each(ctx context.Context, state artifact.State, visit func(storage.Artifact) error) error {
	return pages(func(page storage.Page) (string, error) {
		versions, next, err := s.Store.InState(ctx, state, page)
		if err != nil {
			return "", err
		}
		for _, v := range versions {
			activity.RecordHeartbeat(ctx)
			if err := visit(v); err != nil {
				return "", err
			}
		}
		return next, nil
	})
}

func (s Sweeper) version(ctx context.Context, v storage.Artifact, report *workflows.SweepReport) error {
	now := s.Now()
	switch {
	case v.Compensates != "" || v.SettledAt == nil:
		return nil // its content is its original's
	case now.Before(v.SettledAt.Add(s.ArchiveAfter + sweepGrace)):
		return nil
	}
	id := names.ArtifactLifecycleID(v.ArtifactID, v.Version)
	running, err := s.running(ctx, id)
	if err != nil || running {
		return err
	}
	if inUse, err := s.Store.InUse(ctx, v); err != nil || inUse {
		return err
	}
	if !report.DryRun {
		if err := s.archive(ctx, v, now); err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.Logger.WarnContext(ctx, "version was not archived", "workflow", id, "error", err)
			if len(report.Failed) < reported {
				report.Failed = append(report.Failed, fmt.Sprintf("%s: %v", id, err))
			}
			return nil
		}
	}
	report.Archived = append(report.Archived, id)
	return nil
}

// running tells whether a lifecycle is there to archive its version itself.
func (s Sweeper) running(ctx context.Context, id string) (bool, error) {
	description, err := s.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", id, err)
	}
	return description.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// archive does what the lifecycle would have done, in the same order: copy, say
// so, delete.
func (s Sweeper) archive(ctx context.Context, v storage.Artifact, now time.Time) error {
	prefix := storage.ArchivePrefix(v.ArtifactID, v.Version, *v.SettledAt)
	if err := s.Store.CopyToArchive(ctx, v, prefix); err != nil {
		return err
	}
	reason := "its lifecycle had ended"
	event := artifact.Event{From: v.State, To: artifact.Archived, Reason: reason, BundleHash: v.BundleHash, ArchivePrefix: prefix}
	chain := artifact.Chain{Length: v.ChainLength, Last: v.ChainLast}
	if !now.After(v.UpdatedAt) {
		now = v.UpdatedAt.Add(time.Nanosecond)
	}
	record, _, err := chain.Extend(v.Version, string(artifact.Archived), artifact.System, now, v.BundleHash, event)
	if err != nil {
		return err
	}
	err = s.Store.Commit(ctx, storage.Step{
		ArtifactID: v.ArtifactID, Version: v.Version, Record: record, From: v.State, To: artifact.Archived, Reason: reason, ArchivePrefix: prefix,
	})
	if err != nil {
		return err
	}
	return s.conclude(ctx, v)
}

// unfinished looks at what was archived, or settled here, during the last days.
func (s Sweeper) unfinished(ctx context.Context, report *workflows.SweepReport) error {
	for day := range clearDays + 1 {
		date := artifact.Date(s.Now().Add(-time.Duration(day) * 24 * time.Hour))
		err := pages(func(page storage.Page) (string, error) {
			transitions, next, err := s.Store.TransitionsOn(ctx, date, page)
			if err != nil {
				return "", err
			}
			for _, t := range transitions {
				settled := t.Actor == artifact.System && strings.Contains(t.Reason, lifecycleEnded)
				if t.To != artifact.Archived && !settled {
					continue
				}
				activity.RecordHeartbeat(ctx)
				v, err := s.Store.Version(ctx, t.ArtifactID, t.Version)
				if err == nil {
					err = s.complete(ctx, v, report)
				}
				if err != nil {
					return "", err
				}
			}
			return next, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pages turns the pages of a list until its end.
func pages(turn func(storage.Page) (next string, err error)) error {
	page := storage.Page{Limit: sweepPage}
	for {
		next, err := turn(page)
		if err != nil || next == "" {
			return err
		}
		page.Cursor = next
	}
}

// complete does what a crash right after archiving left undone: it deletes the
// originals and writes the snapshots.
func (s Sweeper) complete(ctx context.Context, v storage.Artifact, report *workflows.SweepReport) error {
	left, err := false, error(nil)
	if v.State == artifact.Archived {
		left, err = s.Store.OriginalsLeft(ctx, v)
	}
	if err != nil {
		return err
	}
	published, err := s.Store.Published(ctx, v)
	if err != nil || published && !left {
		return err
	}
	report.Cleared++
	if report.DryRun {
		return nil
	}
	if v.State != artifact.Archived {
		return s.snapshots(ctx, v.ArtifactID, v.Version)
	}
	return s.conclude(ctx, v)
}

// conclude is what follows once a version is archived: whatever of it is
// interrupted is done again by the next sweep.
func (s Sweeper) conclude(ctx context.Context, v storage.Artifact) error {
	if err := s.Store.RemoveOriginals(ctx, v); err != nil {
		return err
	}
	return s.snapshots(ctx, v.ArtifactID, v.Version)
}

// orphans deletes what was uploaded a day ago or earlier and no version names. A
// lifecycle that is only beginning may still refer to its upload.
func (s Sweeper) orphans(ctx context.Context, report *workflows.SweepReport) error {
	begins := map[string]bool{}
	for o, err := range s.Store.Orphans(ctx, s.Now().Add(-orphanAge)) {
		if err != nil {
			return err
		}
		activity.RecordHeartbeat(ctx)
		id := names.ArtifactLifecycleID(o.ArtifactID, o.Version)
		running, known := begins[id]
		if !known {
			if running, err = s.running(ctx, id); err != nil {
				return err
			}
			begins[id] = running
		}
		if running {
			continue
		}
		if err := s.orphan(ctx, o, report); err != nil {
			return err
		}
	}
	return nil
}

func (s Sweeper) orphan(ctx context.Context, o storage.Orphan, report *workflows.SweepReport) error {
	if !report.DryRun {
		if removed, err := s.Store.RemoveOrphan(ctx, o); err != nil || !removed {
			return err
		}
	}
	if report.Orphaned++; len(report.Orphans) < reported {
		report.Orphans = append(report.Orphans, o.Key)
	}
	return nil
}

// cool moves the files of runs that are two weeks old to STANDARD_IA.
func (s Sweeper) cool(ctx context.Context, report *workflows.SweepReport) error {
	for day := range coolDays {
		date := artifact.Date(s.Now().Add(-coolAfter - time.Duration(day+1)*24*time.Hour))
		err := pages(func(page storage.Page) (string, error) {
			runs, next, err := s.Store.RunsOn(ctx, date, page)
			if err != nil {
				return "", err
			}
			for _, run := range runs {
				activity.RecordHeartbeat(ctx)
				report.Cooled++
				if report.DryRun {
					continue
				}
				if err := s.Store.Cool(ctx, run.Run); err != nil {
					return "", err
				}
			}
			return next, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
