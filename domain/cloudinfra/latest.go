package cloudinfra

import (
	"encoding/json"
	"fmt"
	"time"

	"millrace/domain/factory"
)

// SchemaVersion is the version of the documents written here.
const SchemaVersion = "cloud-infra-status-v1"

// Track names one of the two halves of the read model.
type Track string

// The tracks.
const (
	TrackFast Track = "fast"
	TrackSlow Track = "slow"
)

// Keys of the factory status table.
const (
	PK       = "CLOUD#infra"
	LatestSK = "LATEST"
)

// HistoryPrefix is the prefix of the sort keys of a track's history.
func (t Track) HistoryPrefix() string {
	if t == TrackFast {
		return "HISTORY#FAST#"
	}
	return "HISTORY#SLOW#"
}

// HistorySK is the sort key of the history item written at updatedAt.
func (t Track) HistorySK(updatedAt factory.Millis) string {
	return t.HistoryPrefix() + updatedAt.String()
}

// SnapshotKey is the key of the long-lived copy of a snapshot; the leaf is
// updatedAt verbatim.
func (t Track) SnapshotKey(updatedAt factory.Millis) string {
	return fmt.Sprintf("processed/cloud_infra/%s/%s/%s.json", t, updatedAt.UTC().Format("yyyy=2006/mm=01/dd=02/hh=15"), updatedAt)
}

// Latest is the current state of the infrastructure: the item CLOUD#infra/LATEST.
// Each collector owns its half and never touches the other's.
type Latest struct {
	PK            string          `json:"pk"`
	SK            string          `json:"sk"`
	SchemaVersion string          `json:"schema_version"`
	UpdatedAt     factory.Millis  `json:"updated_at"`
	FastUpdatedAt *factory.Millis `json:"fast_updated_at,omitempty"`
	SlowUpdatedAt *factory.Millis `json:"slow_updated_at,omitempty"`
	OverallStatus Status          `json:"overall_status"`
	Fast          *Fast           `json:"fast,omitempty"`
	Slow          *Slow           `json:"slow,omitempty"`
}

// Half is a snapshot of one track, measured by a run that began at At. Exactly
// one of Fast and Slow is set.
type Half struct {
	At   factory.Millis
	Fast *Fast
	Slow *Slow
}

// Track is the track of the half that is set.
func (h Half) Track() Track {
	if h.Fast != nil {
		return TrackFast
	}
	return TrackSlow
}

// Standing tells how a half relates to what is stored.
type Standing string

// The standings of a half.
const (
	// Newer means that it becomes the current state.
	Newer Standing = "newer"
	// Same means that this run has stored it already.
	Same Standing = "same"
	// Older means that a later run has stored its own: this one must not replace it.
	Older Standing = "older"
)

// maxAhead is how far in the future a stored time may lie before it is taken for
// the work of a wrong clock. No run of a sampler lives that long.
const maxAhead = 5 * time.Minute

// Standing compares the half with what is stored. A stored time that lies far in
// the future of both the run and the writer's own clock, now, is a wrong clock's
// and gives way: else nothing could be stored until that time has come.
func (h Half) Standing(stored Latest, now time.Time) Standing {
	at := stored.At(h.Track())
	switch {
	case at == nil || at.Before(h.At.Time):
		return Newer
	case at.Equal(h.At.Time):
		return Same
	case at.After(h.At.Add(maxAhead)) && at.After(now.Add(maxAhead)):
		return Newer
	}
	return Older
}

// At is when a track was last written, nil for never.
func (l Latest) At(t Track) *factory.Millis {
	if t == TrackFast {
		return l.FastUpdatedAt
	}
	return l.SlowUpdatedAt
}

// With is the state with a half replaced; the other half stays as it is.
func (l Latest) With(h Half) Latest {
	l.PK, l.SK, l.SchemaVersion = PK, LatestSK, SchemaVersion
	at := h.At
	other := l.SlowUpdatedAt
	if h.Fast != nil {
		l.Fast, l.FastUpdatedAt = h.Fast, &at
	} else {
		other = l.FastUpdatedAt
		l.Slow, l.SlowUpdatedAt = h.Slow, &at
	}
	l.UpdatedAt = at
	if other != nil && other.After(at.Time) {
		l.UpdatedAt = *other
	}
	l.OverallStatus = Worst(append(l.Fast.counted(), l.Slow.counted()...)...)
	return l
}

// History is a history item, and without its ttl a snapshot object: one half with
// the overall status of its time.
type History struct {
	PK            string          `json:"pk"`
	SK            string          `json:"sk"`
	SchemaVersion string          `json:"schema_version"`
	SnapshotType  Track           `json:"snapshot_type"`
	UpdatedAt     factory.Millis  `json:"updated_at"`
	FastUpdatedAt *factory.Millis `json:"fast_updated_at,omitempty"`
	SlowUpdatedAt *factory.Millis `json:"slow_updated_at,omitempty"`
	OverallStatus Status          `json:"overall_status"`
	Fast          *Fast           `json:"fast,omitempty"`
	Slow          *Slow           `json:"slow,omitempty"`
	TTL           int64           `json:"ttl,omitempty"`
}

// History is the history item of a half in the state that it led to; it expires
// after keep.
func (h Half) History(overall Status, keep time.Duration) History {
	item := History{
		PK: PK, SK: h.Track().HistorySK(h.At), SchemaVersion: SchemaVersion, SnapshotType: h.Track(),
		UpdatedAt: h.At, OverallStatus: overall, Fast: h.Fast, Slow: h.Slow, TTL: h.At.Add(keep).Unix(),
	}
	at := h.At
	if h.Fast != nil {
		item.FastUpdatedAt = &at
	} else {
		item.SlowUpdatedAt = &at
	}
	return item
}

// Snapshot is the body of the long-lived copy of a history item.
func (h History) Snapshot() History {
	h.TTL = 0
	return h
}

// UnmarshalJSON takes a time that can't be read for one that is missing: the
// half is stale then, and the rest can still be shown.
func (l *Latest) UnmarshalJSON(data []byte) error {
	type plain Latest
	var read struct {
		plain
		UpdatedAt     json.RawMessage `json:"updated_at"`
		FastUpdatedAt json.RawMessage `json:"fast_updated_at"`
		SlowUpdatedAt json.RawMessage `json:"slow_updated_at"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*l = Latest(read.plain)
	if at := readMillis(read.UpdatedAt); at != nil {
		l.UpdatedAt = *at
	}
	l.FastUpdatedAt, l.SlowUpdatedAt = readMillis(read.FastUpdatedAt), readMillis(read.SlowUpdatedAt)
	return nil
}

func readMillis(data json.RawMessage) *factory.Millis {
	var at *factory.Millis
	if json.Unmarshal(data, &at) != nil {
		return nil
	}
	return at
}
