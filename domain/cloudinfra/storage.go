package cloudinfra

import (
	"time"
)

// StorageFreshness is the section of how fresh each factory's objects are.
type StorageFreshness struct {
	Section
	Factories []StorageFactory `json:"factories"`
}

// StorageFactory is when the newest object of a factory was written: its raw
// messages, its state snapshots and its aggregates. A null was not found within
// the look-back.
type StorageFactory struct {
	FactoryID            string     `json:"factory_id"`
	Status               Status     `json:"status"`
	LatestRawAt          *time.Time `json:"latest_raw_at"`
	LatestProcessedAt    *time.Time `json:"latest_processed_at"`
	LatestProcessedAggAt *time.Time `json:"latest_processed_agg_at"`
}

func evaluateStorage(r SlowReport, t Thresholds, now time.Time) StorageFreshness {
	if !r.Has(storageProbes...) {
		return StorageFreshness{Section: notConfigured(), Factories: []StorageFactory{}}
	}
	s := StorageFreshness{Factories: make([]StorageFactory, len(r.Storage))}
	errors := r.errors(storageProbes...)
	var v verdict
	for i, f := range r.Storage {
		f.Status = v.storage(f, t, now, failedFor(errors, f.FactoryID))
		s.Factories[i] = f
	}
	s.Section = v.section(errors)
	return s
}

func failedFor(errors []Error, factoryID string) bool {
	for _, e := range errors {
		if e.FactoryID == factoryID {
			return true
		}
	}
	return false
}

// storage judges one factory's objects. What was found too old counts even where
// another listing failed; what was not found counts only where none failed.
func (v *verdict) storage(f StorageFactory, t Thresholds, now time.Time, failed bool) Status {
	if f.LatestRawAt == nil && f.LatestProcessedAt == nil && f.LatestProcessedAggAt == nil {
		v.states = append(v.states, Unknown)
		return Unknown
	}
	var found []finding
	for _, k := range []struct {
		name  string
		at    *time.Time
		limit time.Duration
	}{
		{"raw", f.LatestRawAt, t.RawAge}, {"processed", f.LatestProcessedAt, t.ProcessedAge}, {"processed_agg", f.LatestProcessedAggAt, t.AggregateAge},
	} {
		found = append(found,
			warns(k.at == nil && !failed, "storage_"+k.name+"_missing:"+f.FactoryID),
			warns(k.at != nil && now.Sub(*k.at) >= k.limit, "storage_"+k.name+"_age>=threshold:"+f.FactoryID))
	}
	status := v.part(found...)
	if failed {
		status = Worst(status, Unknown)
	}
	return status
}
