package artifact

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millrace/domain/artifact"
	"millrace/workflows/names"
)

var (
	idAttribute     = temporal.NewSearchAttributeKeyKeyword(names.ArtifactIDAttribute)
	stateAttribute  = temporal.NewSearchAttributeKeyKeyword(names.ArtifactStateAttribute)
	kindAttribute   = temporal.NewSearchAttributeKeyKeyword(names.ArtifactKindAttribute)
	authorAttribute = temporal.NewSearchAttributeKeyKeyword(names.ArtifactAuthorAttribute)
)

// status is the answer to the query.
func (l *lifecycle) status() Status {
	expires := l.expiresAt()
	if l.State == artifact.Draft {
		expires = l.draftExpires()
	}
	return Status{
		ArtifactID: l.request.ArtifactID, Version: l.request.Version, Kind: l.request.Spec.Kind, Author: l.request.Author,
		State: l.State, Since: l.Since, BundleHash: l.BundleHash, Tally: l.tally(), WaitingFor: l.waiting, Until: l.until, ExpiresAt: expires,
		Reason: l.Reason, Refused: l.Refused, Refusals: l.Refusals, Runs: l.Runs, Undo: l.Undo, Rollout: l.Rollout,
	}
}

// describe brings what the Temporal UI shows up to date.
func (l *lifecycle) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, l.details())
	if !l.Settings.SearchAttributes {
		return
	}
	known := workflow.GetTypedSearchAttributes(ctx)
	if state, ok := known.GetKeyword(stateAttribute); ok && state == string(l.State) {
		return
	}
	err := workflow.UpsertTypedSearchAttributes(ctx,
		idAttribute.ValueSet(l.request.ArtifactID), stateAttribute.ValueSet(string(l.State)),
		kindAttribute.ValueSet(string(l.request.Spec.Kind)), authorAttribute.ValueSet(l.request.Author))
	if err != nil {
		workflow.GetLogger(ctx).Warn("search attributes were not set", "error", err)
	}
}

func (l *lifecycle) details() string {
	t := l.tally()
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) {
		if value != "" {
			b.WriteString(fmt.Sprintf("| %s | %s |\n", name, cell(value))) //nolint:staticcheck // Fprintf is not known to be deterministic
		}
	}
	row("state", fmt.Sprintf("**%s** since %s", l.State, artifact.Timestamp(l.Since)))
	row("waiting for", l.waiting)
	row("asked by", l.request.Author)
	row("reason", l.request.Reason)
	row("content", l.BundleHash)
	row("approvals", fmt.Sprintf("%d of %d: %s", len(t.Approvals), t.Required, strings.Join(t.Approvals, ", ")))
	row("rejections", strings.Join(t.Rejections, ", "))
	for _, r := range l.Runs {
		row("run of "+string(r.Role), fmt.Sprintf("%s: %s %s", r.RunID, r.Status, r.Detail))
	}
	if n := len(l.Refusals); n > 0 {
		row("last refusal", l.Refusals[n-1].Reason)
	}
	return b.String() + l.Rollout.table()
}

// cell is a text as a cell of a table.
func cell(text string) string {
	return artifact.Printable(strings.NewReplacer("|", "\\|", "\n", " ").Replace(text))
}

// table shows how far each factory is.
func (r *Rollout) table() string {
	if r == nil {
		return ""
	}
	lines := []string{"", fmt.Sprintf("Wave %d of %d", r.Wave, r.Waves), "", "| factory | wave | state | score before | after | detail | undo |", "|---|---|---|---|---|---|---|"}
	for _, f := range r.Factories {
		before, after, undo := "", "", ""
		if f.Baseline != nil && f.Baseline.Score != nil {
			before = f.Baseline.Score.String()
		}
		if f.After != nil {
			after = f.After.String()
		}
		if f.Undo != nil {
			undo = fmt.Sprintf("%s, attempt %d", f.Undo.State, f.Undo.Attempts)
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s |", f.FactoryID, f.Wave, f.State, before, after, cell(f.Detail), undo))
	}
	return strings.Join(lines, "\n") + "\n"
}
