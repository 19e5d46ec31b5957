package report

import (
	"sync"
	"time"
)

// seriesStep is the length of the buckets of curves.
const seriesStep = 5 * time.Minute

// FactoryHour gathers the objects of one factory and hour. The summary does not
// depend on the order in which they are added. It is safe for concurrent use.
type FactoryHour struct {
	factoryID string
	day       Day
	hour      Hour
	settings  Settings

	mu         sync.Mutex
	states     records[stateValue]
	risks      records[riskValue]
	infra      records[infraValue]
	snapshots  int64
	final      record[FinalState]
	invalid    int64
	duplicates int64
	unread     int64
}

// NewFactoryHour gathers nothing yet.
func NewFactoryHour(factoryID string, day Day, hour Hour, settings Settings) *FactoryHour {
	return &FactoryHour{
		factoryID: factoryID, day: day, hour: hour, settings: settings,
		states: records[stateValue]{}, risks: records[riskValue]{}, infra: records[infraValue]{},
	}
}

// Add takes the body of a processed object of a dataset. A broken object is
// counted; one of another factory, of another hour or of a dataset that the
// report does not read is passed over. Of state snapshots only the last is kept.
// The body isn't kept.
func (f *FactoryHour) Add(dataset string, body []byte) { f.take(dataset, body, true) }

// AddShared is Add for an object of a partition that begins in an earlier hour:
// where a zone's hours are not those of UTC, both hours read it, and one that
// can't be read counts in the earlier one only.
func (f *FactoryHour) AddShared(dataset string, body []byte) { f.take(dataset, body, false) }

func (f *FactoryHour) take(dataset string, body []byte, counts bool) {
	switch dataset {
	case FactoryStateDataset:
		addObject[stateObject](f, body, counts, func(h head, at time.Time, value stateValue) bool { return f.states.add(h, at, body, value) })
	case RiskScoreDataset:
		addObject[riskObject](f, body, counts, func(h head, at time.Time, value riskValue) bool { return f.risks.add(h, at, body, value) })
	case InfraStateDataset:
		addObject[infraObject](f, body, counts, func(h head, at time.Time, value infraValue) bool { return f.infra.add(h, at, body, value) })
	case StateSnapshotDataset:
		addObject[snapshotObject](f, body, counts, func(h head, at time.Time, value FinalState) bool { return f.addSnapshot(h, at, body, value) })
	}
}

// Unread notes objects of the hour that are left out, because there are too many.
func (f *FactoryHour) Unread(count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unread += int64(max(0, count))
}

// addObject reads an object and adds it by add, which tells whether it is new.
func addObject[O object[T], T any](f *FactoryHour, body []byte, counts bool, add func(head, time.Time, T) bool) {
	h, value, err := readObject[O](body)
	if h.FactoryID != "" && h.FactoryID != f.factoryID {
		return
	}
	at, timeErr := h.when()
	if timeErr == nil && !f.hour.Contains(at) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || timeErr != nil || h.FactoryID == "" {
		f.invalid += oneIf(counts)
		return
	}
	if !add(h, at, value) {
		f.duplicates++
	}
}

// addSnapshot keeps the newest snapshot; none is a duplicate, since they are no
// records of the report.
func (f *FactoryHour) addSnapshot(h head, at time.Time, body []byte, final FinalState) bool {
	f.snapshots++
	one := records[FinalState]{}
	final.UpdatedAt = at
	one.add(h, at, body, final)
	for _, added := range one {
		if f.snapshots == 1 || at.After(f.final.at) || (at.Equal(f.final.at) && added.preferredTo(f.final)) {
			f.final = added
		}
	}
	return true
}

// Summary is the aggregate of what was added.
func (f *FactoryHour) Summary() FactoryHourSummary {
	f.mu.Lock()
	defer f.mu.Unlock()
	gathered := hourData{
		day: f.day, hour: f.hour, settings: f.settings,
		states: f.states.sorted(), risks: f.risks.sorted(), infra: f.infra.sorted(),
	}
	summary := gathered.summary(f.factoryID)
	summary.InputCounts.StateSnapshot = f.snapshots
	summary.InputCounts.InvalidRecords, summary.InputCounts.DuplicateRecords = f.invalid, f.duplicates
	summary.InputCounts.UnreadObjects = f.unread
	if f.snapshots > 0 {
		final := f.final.value
		summary.Snapshot = &final
	}
	return summary
}
