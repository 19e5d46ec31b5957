package report

import (
	"time"

	"millrace/domain/exact"
)

// CloudArgoCD are the figures of Argo CD. Total, Synced and Healthy are the last
// known.
type CloudArgoCD struct {
	AsOf         *time.Time    `json:"as_of"`
	Samples      CloudCounts   `json:"samples"`
	Total        *int64        `json:"applications_total"`
	Synced       *int64        `json:"synced"`
	Healthy      *int64        `json:"healthy"`
	MaxOutOfSync *int64        `json:"out_of_sync_max"`
	MaxDegraded  *int64        `json:"degraded_max"`
	OutOfSync    exact.Decimal `json:"out_of_sync_minutes"`
	Degraded     exact.Decimal `json:"degraded_minutes"`
	// Apps has the minutes of each application that was not both Synced and Healthy.
	Apps map[string]cloudMinutes `json:"affected_applications,omitempty"`
}

func (s cloudSight) argocd(section cloudSight) *CloudArgoCD {
	outOfSync, degraded := s.fields.integer("out_of_sync"), s.fields.integer("degraded")
	a := &CloudArgoCD{
		AsOf: s.asOf(), Samples: cloudOneStatus(s.partStatus(section)),
		Total: s.fields.integer("applications_total"), Synced: s.fields.integer("synced"), Healthy: s.fields.integer("healthy"),
		MaxOutOfSync: outOfSync, MaxDegraded: degraded,
		OutOfSync: cloudWhen(cloudValue(outOfSync) > 0, s.span), Degraded: cloudWhen(cloudValue(degraded) > 0, s.span),
	}
	for _, app := range s.fields.children("apps") {
		if app.name("sync_status") != "Synced" || app.name("health_status") != "Healthy" {
			a.Apps = cloudMergeMaps(a.Apps, map[string]cloudMinutes{app.name("name"): {s.span}}, cloudMinutes.merge)
		}
	}
	return a
}

func (a *CloudArgoCD) merge(o *CloudArgoCD) *CloudArgoCD {
	if a == nil || o == nil {
		return cloudEither(a, o)
	}
	last := *a
	if cloudLater(a.AsOf, o.AsOf) {
		last = *o
	}
	last.Samples = a.Samples.merge(o.Samples)
	last.MaxOutOfSync, last.MaxDegraded = cloudMax(a.MaxOutOfSync, o.MaxOutOfSync), cloudMax(a.MaxDegraded, o.MaxDegraded)
	last.OutOfSync, last.Degraded = a.OutOfSync.Add(o.OutOfSync), a.Degraded.Add(o.Degraded)
	last.Apps = cloudMergeMaps(a.Apps, o.Apps, cloudMinutes.merge)
	return &last
}
