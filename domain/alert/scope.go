package alert

import (
	"regexp"
	"strings"

	"millrace/domain/factory"
)

// Scopes that are no factories.
const (
	ScopeCloud         = "cloud-infra"
	ScopeArtifacts     = "artifacts"
	ScopeObservability = "observability"
	appScopePrefix     = "app."
)

var appIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// AppScope is the scope of an application.
func AppScope(appID string) string { return appScopePrefix + appID }

// AppOf is the application of a scope and whether it is an application's.
func AppOf(scope string) (string, bool) { return strings.CutPrefix(scope, appScopePrefix) }

// CheckScope refuses what names no alert scope: a factory id, app.{app_id},
// cloud-infra, artifacts or observability.
func CheckScope(scope string) error {
	switch scope {
	case ScopeCloud, ScopeArtifacts, ScopeObservability:
		return nil
	}
	if app, ok := AppOf(scope); ok {
		if !appIDPattern.MatchString(app) {
			return invalid("scope", "app.{app_id} needs an app_id of [A-Za-z0-9._-]{1,64}")
		}
		return nil
	}
	if factory.CheckFactoryID(scope) != nil {
		return invalid("scope", "must be a factory id, app.{app_id}, cloud-infra, artifacts or observability")
	}
	return nil
}
