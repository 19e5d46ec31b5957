package artifact

import "context"

// AuditOnce is Audit without looking again.
func (s Store) AuditOnce(ctx context.Context, id string, gatewayKeys []string) ([]Finding, error) {
	return s.audit(ctx, id, gatewayKeys)
}
