package artifact

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
)

// settled waits for the time to archive, or for somebody who undoes or archives.
func (l *lifecycle) settled(ctx workflow.Context) error {
	due := l.Since.Add(l.Settings.ArchiveAfter.Of())
	if l.NotBefore.After(due) {
		due = l.NotBefore
	}
	if workflow.Now(ctx).Before(due) {
		return l.wait(ctx, due, "the time to archive")
	}
	err := l.archive(ctx, artifact.System, fmt.Sprintf("%s after it was %s", l.Settings.ArchiveAfter.Of(), l.State))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.NotBefore = workflow.Now(ctx).Add(archiveRetry)
	if typeOf(err) == ErrBusy {
		return nil // factories run it: as it should be
	}
	l.notify(ctx, "archive_failed", fmt.Sprintf("%s v%d was not archived: %s", l.request.ArtifactID, l.request.Version, messageOf(err)), false)
	return nil
}

// archive copies the content, says so in the item, and only then deletes the
// originals. Whatever is interrupted is done again without harm.
func (l *lifecycle) archive(ctx workflow.Context, actor, reason string) error {
	request := ArchiveRequest{VersionRef: l.ref(), SettledAt: l.Since}
	var result ArchiveResult
	options := contentOptions("Copy the content to the archive")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), ArchiveActivity, request).Get(ctx, &result); err != nil {
		return err
	}
	err := l.move(ctx, artifact.Archived, actor, reason, func(s *Step) { s.ArchivePrefix = result.Prefix })
	if err != nil {
		return err
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	options = contentOptions("Delete the originals")
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(disconnected, options), ClearActivity, l.ref()).Get(disconnected, nil); err != nil {
		return err
	}
	return l.publish(disconnected)
}
