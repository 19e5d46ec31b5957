package alert

// Decision is what the rules make of one snapshot.
type Decision struct {
	Alerts     []Alert       `json:"alerts"`
	Suppressed []Suppression `json:"suppressed"`
}

// Suppression is a candidate that is not sent, and why.
type Suppression struct {
	Alert Alert `json:"alert"`
	// Why is a short token, after a colon the key or reason that stood in the way.
	Why string `json:"why"`
}

// Why the rules suppress a candidate.
const (
	whyPipeline  = "pipeline_alert_covers"
	whyGate      = "gate_covers"
	whySameKey   = "same_key"
	whySpecific  = "specific_alert_covers"
	whyCollector = "collector_error_covers"
	whyScope     = "factory_alerts_cover"
)

// raise adds an alert unless the same key is there already: the first one is
// the richer one.
func (d *Decision) raise(a Alert) {
	a.Reason = Slug(a.Reason)
	key := a.Key()
	for _, raised := range d.Alerts {
		if raised.Key() == key {
			d.suppress(a, whySameKey+":"+raised.Because)
			return
		}
	}
	d.Alerts = append(d.Alerts, a)
}

func (d *Decision) suppress(a Alert, why string) {
	a.Reason = Slug(a.Reason)
	a.Details = Details{}
	d.Suppressed = append(d.Suppressed, Suppression{Alert: a, Why: why})
}
