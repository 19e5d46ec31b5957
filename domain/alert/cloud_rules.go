package alert

import (
	"cmp"
	"fmt"
	"strings"

	"millrace/domain/factory"
)

// cloudRules are the rules that both halves share.
type cloudRules struct {
	source    SourceType
	track     string
	at        factory.Millis
	sourceKey string
}

func (r cloudRules) alert(severity Severity, reason, status, because string, details Details) Alert {
	key := r.sourceKey
	if key == "" {
		key = CloudSnapshotKey(r.track, r.at)
	}
	return Alert{
		Scope: ScopeCloud, SourceType: r.source, Severity: severity, Reason: reason, Status: status, FingerprintStatus: r.track,
		SourceUpdatedAt: r.at, SourceKey: key, Because: because, Details: details,
	}
}

// CloudSnapshotKey is the key of a cloud snapshot's object; track is fast or
// slow, the leaf is updated_at verbatim.
func CloudSnapshotKey(track string, at factory.Millis) string {
	return fmt.Sprintf("processed/cloud_infra/%s/%s/%s.json", track, at.UTC().Format("yyyy=2006/mm=01/dd=02/hh=15"), at)
}

// severityOf is danger for critical only: unknown is a warning, because nobody
// knows.
func severityOf(status string) Severity {
	if status == statusCritical {
		return Danger
	}
	return Warning
}

// statusOf is a section's status; a missing section or status is unknown.
func statusOf(s *section) string {
	if s == nil {
		return statusUnknown
	}
	return cmp.Or(s.Status, statusUnknown)
}

func watched(status string) bool { return status != statusNormal && status != statusNotConfigured }

// collectorErrors raises one warning for each collector that failed, however
// many of its calls did: unauthorized when any of them was refused.
func (r cloudRules) collectorErrors(d *Decision, errors []CollectorError) {
	byCollector := map[string][]CollectorError{}
	var order []string
	for _, e := range errors {
		name := e.collector()
		if byCollector[name] == nil {
			order = append(order, name)
		}
		byCollector[name] = append(byCollector[name], e)
	}
	for _, name := range order {
		kind := collectorError
		for _, e := range byCollector[name] {
			if e.unauthorized() {
				kind = collectorUnauthorized
			}
		}
		because := fmt.Sprintf("%s: %d collector errors of %s", r.track, len(byCollector[name]), name)
		d.raise(r.alert(Warning, name+kind, statusUnknown, because, Details{Errors: byCollector[name]}))
	}
}

// generic raises {name}_{status} for a section that is not normal, unless
// something more specific tells of it already.
func (r cloudRules) generic(d *Decision, name string, s *section, specific string, errors []CollectorError) {
	status := statusOf(s)
	if !watched(status) {
		return
	}
	a := r.alert(severityOf(status), name+"_"+status, status, fmt.Sprintf("%s: %s is %s", r.track, name, status), sectionDetails(s))
	switch {
	case specific != "":
		d.suppress(a, whySpecific+":"+specific)
	case status == statusUnknown && len(errors) > 0:
		d.suppress(a, whyCollector+":"+errors[0].collector())
	default:
		d.raise(a)
	}
}

func sectionDetails(s *section) Details {
	if s == nil || len(s.Reasons) == 0 {
		return Details{}
	}
	return Details{Facts: []Fact{{Topic: TopicSection, Name: "reasons", Value: strings.Join(s.Reasons, ", ")}}}
}

// since is the reason of the first alert raised after the mark, "" when there is
// none: the specific alert that covers a section.
func (d *Decision) since(mark int) string {
	if len(d.Alerts) == mark {
		return ""
	}
	return d.Alerts[mark].Reason
}
