package report

import (
	"slices"
	"time"

	"millrace/domain/exact"
)

// CloudSection is what every section of a snapshot tells: its status and why.
type CloudSection struct {
	Samples CloudCounts `json:"samples"`
	// Reasons are the reason tokens of sections that were not normal, with the
	// minutes that they stood.
	Reasons map[string]cloudMinutes `json:"reasons,omitempty"`
}

func (s CloudSection) merge(o CloudSection) CloudSection {
	return CloudSection{Samples: s.Samples.merge(o.Samples), Reasons: cloudMergeMaps(s.Reasons, o.Reasons, cloudMinutes.merge)}
}

// cloudSight is one look at a section: its fields, when it was and for how long
// it stands.
type cloudSight struct {
	fields cloudFields
	at     time.Time
	span   exact.Decimal
	// path is where in the snapshot the fields stand, and counted are the counters by
	// their paths that a later snapshot of the same five minutes had already.
	path    string
	counted map[string]bool
}

// child is the same look at a part of the section.
func (s cloudSight) child(key string) (cloudSight, bool) {
	s.fields, s.path = s.fields.child(key), s.path+"/"+key
	return s, s.fields != nil
}

func (s cloudSight) asOf() *time.Time { return &s.at }

func (s cloudSight) section() CloudSection {
	section := CloudSection{Samples: cloudOneStatus(s.fields.status("status"))}
	for _, reason := range s.fields.reasons() {
		if section.Reasons == nil {
			section.Reasons = map[string]cloudMinutes{}
		}
		section.Reasons[reason] = cloudMinutes{s.span}
	}
	return section
}

// says tells whether the section gives a reason.
func (s cloudSight) says(reason string) bool {
	return slices.Contains(s.fields.reasons(), cloudReason(reason))
}

func (s cloudSight) stat(key string) *CloudStat { return cloudMeasured(s.fields.number(key)) }

func (s cloudSight) counter(key string) CloudCounter {
	value := s.fields.number(key)
	if value == nil {
		return CloudCounter{}
	}
	c := CloudCounter{Peak: *value, Minutes: cloudWhen(value.Sign() > 0, s.span)}
	if path := s.path + "/" + key; !s.counted[path] {
		c.Total, s.counted[path] = *value, true
	}
	return c
}
