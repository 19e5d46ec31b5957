package report

import (
	"bytes"
	"crypto/sha256"
	"time"

	"millrace/domain/alert"
	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	"millrace/domain/factory"
)

// Halves of a snapshot, as their folders are named.
const (
	CloudFast = string(cloudinfra.TrackFast)
	CloudSlow = string(cloudinfra.TrackSlow)
)

var cloudHalves = []string{CloudFast, CloudSlow}

// cloudInterval is how often a half is written, and so how long a sample of it
// stands for.
func (s Settings) cloudInterval(half string) time.Duration {
	if half == CloudFast {
		return s.CloudFastInterval
	}
	return s.CloudSlowInterval
}

// cloudGapLimit is the distance between samples from which something is missing:
// twice the interval (factory.md, 7.7: 120 and 600 seconds).
func (s Settings) cloudGapLimit(half string) time.Duration { return 2 * s.cloudInterval(half) }

// cloudSample is one valid snapshot of a half.
type cloudSample struct {
	half   string
	at     time.Time
	fields cloudFields
	span   exact.Decimal
	// events are the alerts that the rules raise on it, judged false where they
	// can't read it.
	events []alert.Alert
	judged bool
	// digest decides between two different bodies of one time.
	digest [sha256.Size]byte
}

// readCloudSample reads a snapshot object of a half. One without the half, a time
// or our schema is none.
func readCloudSample(half string, body []byte, settings Settings) (cloudSample, bool) {
	document, err := readCloudFields(body)
	if err != nil || document["schema_version"] != cloudinfra.SchemaVersion {
		return cloudSample{}, false
	}
	fields := document.child(half)
	at := document.instant("updated_at")
	if at == nil {
		at = document.instant(half + "_updated_at")
	}
	if fields == nil || at == nil {
		return cloudSample{}, false
	}
	s := cloudSample{
		half: half, at: factory.MillisOf(*at).Time, fields: fields,
		span: cloudMinutesOf(settings.cloudInterval(half)), digest: sha256.Sum256(body),
	}
	s.events, s.judged = cloudAlerts(half, body)
	return s, true
}

// cloudAlerts are what the alert rules raise on a snapshot: the report tells of
// the same events that people were alerted to.
func cloudAlerts(half string, body []byte) ([]alert.Alert, bool) {
	decide := alert.Fast
	if half == CloudSlow {
		decide = alert.Slow
	}
	decision, err := decide(body, "")
	if err != nil {
		return nil, false
	}
	return decision.Alerts, true
}

// before orders two samples of one time, so that it does not matter which was
// read first.
func (s cloudSample) before(o cloudSample) bool { return bytes.Compare(s.digest[:], o.digest[:]) < 0 }

// sight is the look at one of the half's sections; ok is false where it has none.
func (s cloudSample) sight(section string, counted map[string]bool) (cloudSight, bool) {
	fields := s.fields.child(section)
	return cloudSight{fields: fields, at: s.at, span: s.span, path: section, counted: counted}, fields != nil
}

// status is the worst of the sections that count. Freshness of factories does not
// (factory.md, 11.16), nor does a section that is not configured or that an older
// collector did not write; of a half without any nothing is known.
func (s cloudSample) status() cloudinfra.Status {
	sections := []string{"backend_runtime", "datastores", "data_pipeline"}
	if s.half == CloudSlow {
		sections = []string{"eks_management", "storage_freshness"}
	}
	var states []cloudinfra.Status
	configured := false
	for _, name := range sections {
		section := s.fields.child(name)
		if section == nil {
			continue
		}
		state := section.status("status")
		states, configured = append(states, state), configured || state != cloudinfra.NotConfigured
	}
	if len(states) > 0 && !configured {
		return cloudinfra.NotConfigured
	}
	return cloudinfra.Worst(states...)
}
