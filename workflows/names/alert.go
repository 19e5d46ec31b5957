package names

// RiskAlert is the workflow type of the entity that sends a scope's alerts.
const RiskAlert = "RiskAlert"

// RiskAlertID is the workflow id of the entity of an alert scope.
func RiskAlertID(scope string) string { return "risk-alert/" + scope }
