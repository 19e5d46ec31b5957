package alert

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"millrace/domain/alert"
)

// describe shows the entity's state in the Temporal UI.
func (w *riskAlert) describe(ctx workflow.Context) {
	total := func(outcome alert.Outcome) int64 { return w.state.Totals[string(outcome)] }
	text := fmt.Sprintf("### Alerts of %s\n\n| sent | suppressed | failed | ambiguous | recovered | open |\n|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | %d |\n",
		w.scope, total(alert.Sent), total(alert.Suppressed), total(alert.Failed), total(alert.Ambiguous), total(alert.Recovered), len(w.state.Open))
	if n := len(w.state.Recent); n > 0 {
		last := w.state.Recent[n-1]
		text += fmt.Sprintf("\nLast: `%s` %s (%s)\n", last.AlertSK, last.Outcome, last.Why)
	}
	workflow.SetCurrentDetails(ctx, text)
}
