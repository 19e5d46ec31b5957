package artifact

import (
	"context"
	"fmt"

	"millrace/domain/alert"
	"millrace/domain/factory"
	workflows "millrace/workflows/artifact"
)

// Alert raises an alert of the scope artifacts.
func (a Activities) Alert(ctx context.Context, r workflows.AlertRequest) error {
	a.Logger.WarnContext(ctx, "artifact needs attention", "artifact", r.ArtifactID, "version", r.Version, "reason", r.Reason, "state", r.State)
	if a.Alerts == nil {
		return nil
	}
	return a.Alerts.Signal(ctx, alert.ScopeArtifacts, decisionOf(r))
}

// decisionOf is the alert that is asked for.
func decisionOf(r workflows.AlertRequest) alert.Decision {
	severity := alert.Warning
	if r.Danger {
		severity = alert.Danger
	}
	return alert.Decision{Alerts: []alert.Alert{{
		Scope: alert.ScopeArtifacts, SourceType: alert.SourceArtifacts, Severity: severity, Reason: r.Reason,
		Status: string(r.State), FingerprintStatus: fmt.Sprintf("%s-v%d", r.ArtifactID, r.Version),
		SourceUpdatedAt: factory.MillisOf(r.At), SourceKey: fmt.Sprintf("artifacts/%s/v%d/metadata.json", r.ArtifactID, r.Version),
		Title: fmt.Sprintf("%s v%d: %s", r.ArtifactID, r.Version, r.Reason), Summary: r.Summary, Because: r.Reason,
	}}}
}
