package alert

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
)

// describe shows the entity's state in the Temporal UI.
func (w *riskAlert) describe(ctx workflow.Context) {
	var text strings.Builder
	fmt.Fprintf(&text, "### Alerts of %s\n\n| sent | suppressed | failed | ambiguous | recovered | open |\n|---|---|---|---|---|---|\n|", w.scope)
	for _, outcome := range []alert.Outcome{alert.Sent, alert.Suppressed, alert.Failed, alert.Ambiguous, alert.Recovered} {
		fmt.Fprintf(&text, " %d |", w.state.Totals[string(outcome)])
	}
	fmt.Fprintf(&text, " %d |\n", len(w.state.Open))
	if n := len(w.state.Recent); n > 0 {
		last := w.state.Recent[n-1]
		fmt.Fprintf(&text, "\nLast: `%s` %s (%s)\n", last.AlertSK, last.Outcome, last.Why)
	}
	workflow.SetCurrentDetails(ctx, text.String())
}
