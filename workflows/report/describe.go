package report

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"
)

var cell = strings.NewReplacer("|", "\\|", "\n", " ")

// describe shows a target's report in the Temporal UI.
func (t *targetRun) describe(ctx workflow.Context) {
	s := t.status
	lines := []string{fmt.Sprintf("### %s on %s\n\n| stage | hours | empty | events | model calls |\n|---|---|---|---|---|\n| %s | %d of %d | %d | %d | %d |\n",
		s.Target, s.Date, s.Stage, s.Done, s.Hours, s.Empty, s.Events, s.Result.ModelCalls)}
	if s.WriteBefore != nil && s.Stage == StageDraft {
		lines = append(lines, fmt.Sprintf("The model may write until %s.\n", s.WriteBefore.UTC().Format(time.RFC3339)))
	}
	for _, violation := range s.Violations {
		lines = append(lines, "- "+cell.Replace(violation))
	}
	if s.Result.Status != "" {
		lines = append(lines, line(s.Result))
	}
	workflow.SetCurrentDetails(ctx, strings.Join(lines, "\n"))
}

// line says how a target ended.
func line(r TargetResult) string {
	parts := []string{r.Status}
	for _, part := range []string{r.Generator, r.Verdict, r.Stage, r.Error, r.Reason} {
		if part != "" {
			parts = append(parts, cell.Replace(part))
		}
	}
	return strings.Join(parts, ", ")
}

// table shows results in the Temporal UI.
func table(results []TargetResult) string {
	var b strings.Builder
	b.WriteString("| day | target | outcome |\n|---|---|---|\n")
	for _, r := range results {
		b.WriteString("| " + r.Date + " | " + r.Target + " | " + line(r) + " |\n")
	}
	return b.String()
}
