package report

import (
	"cmp"
	"slices"

	"millrace/domain/exact"
)

// maxCloudChecks bounds the recommended checks of a day.
const maxCloudChecks = 5

// Priorities of checks.
const (
	cloudHigh   = "high"
	cloudMedium = "medium"
)

// Bounds of the recommended checks: minutes for what passes by itself, and
// restarts and gaps as for factories.
var (
	cloudCheckMinutes = exact.FromInt(10)
)

const (
	cloudCheckRestarts   = 3
	cloudCheckGapSeconds = 300
)

// checks are what the day's figures ask a person to look at, the most urgent
// first. Their texts in the summary are English; a document has its own language.
func (d *CloudDaily) checks() []RecommendedCheck {
	f := d.Figures
	rules := []struct {
		id, priority string
		holds        bool
	}{
		{"ecs", cloudHigh, f.Backend.ECS != nil && f.Backend.ECS.BelowDesired.Sign() > 0},
		{"cluster", cloudHigh, f.clusterTrouble()},
		{"nodes", cloudHigh, f.EKS.Nodes != nil && f.EKS.Nodes.NotReady.Sign() > 0},
		{"stores", cloudHigh, f.storeDown()},
		{"argocd_degraded", cloudHigh, f.EKS.ArgoCD != nil && f.EKS.ArgoCD.Degraded.Sign() > 0},
		{"dead_letters", cloudHigh, f.Pipeline.deadLetters().Sign() > 0},
		{"alb_5xx", cloudMedium, f.Backend.ALB != nil && f.Backend.ALB.Target5xx.Peak.Sign() > 0},
		{"lambdas", cloudMedium, f.Pipeline.failedLambdas() > 0},
		{"pods", cloudMedium, f.EKS.Pods != nil && (f.EKS.Pods.Unhealthy.AtLeast(cloudCheckMinutes) || f.EKS.Pods.Restarts >= cloudCheckRestarts)},
		{"collectors", cloudMedium, d.DataQuality.MaxGapSeconds >= cloudCheckGapSeconds || len(f.Errors) > 0},
		{"schedules", cloudMedium, f.Pipeline.troubledSchedules() > 0},
		{"argocd_drift", cloudMedium, f.EKS.ArgoCD != nil && f.EKS.ArgoCD.OutOfSync.Sign() > 0},
		{"factories", cloudMedium, f.Freshness.stale() > 0},
		{"storage", cloudMedium, f.Storage.stale() > 0},
	}
	checks := []RecommendedCheck{}
	for _, rule := range rules {
		if rule.holds {
			checks = append(checks, RecommendedCheck{
				ID: rule.id, Priority: rule.priority,
				Check: cloudPhrase(English, "check."+rule.id), Reason: cloudPhrase(English, "why."+rule.id),
			})
		}
	}
	slices.SortStableFunc(checks, func(a, b RecommendedCheck) int {
		return cmp.Compare(cloudUrgency[a.Priority], cloudUrgency[b.Priority])
	})
	return checks[:min(len(checks), maxCloudChecks)]
}

var cloudUrgency = map[string]int{cloudHigh: 0, cloudMedium: 1}

func (f CloudFigures) clusterTrouble() bool {
	if c := f.EKS.Cluster; c != nil && c.Inactive.Sign() > 0 {
		return true
	}
	if a := f.EKS.Autoscaling; a != nil && a.Unhealthy.Sign() > 0 {
		return true
	}
	return f.EKS.groupMinutes().Sign() > 0
}

// groupMinutes are the most minutes that any node group was not active.
func (e CloudEKS) groupMinutes() exact.Decimal {
	var most exact.Decimal
	for _, g := range e.Nodegroups {
		most = exact.Max(most, g.Inactive)
	}
	return most
}

func (f CloudFigures) storeDown() bool {
	for _, s := range []*CloudStore{f.Datastores.Redis, f.Datastores.RDS} {
		if s != nil && s.Unavailable.Sign() > 0 {
			return true
		}
	}
	return false
}

// deadLetters are the most minutes that any queue of dead letters was not empty.
func (p CloudPipeline) deadLetters() exact.Decimal {
	var most exact.Decimal
	for _, q := range p.Queues {
		most = exact.Max(most, q.DeadLetters)
	}
	return most
}

func (p CloudPipeline) failedLambdas() int64 {
	var failed int64
	for _, l := range p.Lambdas {
		if l.Errors.Peak.Sign() > 0 || l.Throttles.Peak.Sign() > 0 {
			failed++
		}
	}
	return failed
}

func (p CloudPipeline) troubledSchedules() int64 {
	var troubled int64
	for _, s := range p.Schedules {
		if s.Late.Sign() > 0 || s.Paused.Sign() > 0 {
			troubled++
		}
	}
	return troubled
}

func (f CloudFreshness) stale() int64 {
	var stale int64
	for _, factory := range f.Factories {
		if factory.Stale.Sign() > 0 {
			stale++
		}
	}
	return stale
}

func (f CloudStorage) stale() int64 {
	var stale int64
	for _, factory := range f.Factories {
		if factory.Stale.Sign() > 0 {
			stale++
		}
	}
	return stale
}

// limitations are what a reader must know of the data.
func (d *CloudDaily) limitations() []string {
	texts := []string{}
	for _, id := range d.limits() {
		texts = append(texts, cloudPhrase(English, "limit."+id))
	}
	return texts
}

func (d *CloudDaily) limits() []string {
	limits := []string{"processed", "sampled", "counters", "draft"}
	if len(d.NotConfigured) > 0 {
		limits = append(limits, "not_configured")
	}
	if d.DataQuality.MissingHourCount > 0 {
		limits = append(limits, "missing_hours")
	}
	if d.DataQuality.UnreadObjectCount > 0 {
		limits = append(limits, "unread")
	}
	if d.DataQuality.UnjudgedRecordCount > 0 {
		limits = append(limits, "unjudged")
	}
	return limits
}
