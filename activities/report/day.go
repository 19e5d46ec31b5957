package report

import (
	"context"

	"millrace/domain/report"
	storage "millrace/storage/report"
)

// maxContext bounds a context that is read, in bytes. What merging writes is far
// smaller.
const maxContext = 1 << 20

// writtenDay is a merged day ready to be worded.
type writtenDay struct {
	doc     report.Document
	context []byte
	testbed bool
	// foreign are the factories that the report is not about.
	foreign []string
}

// readDay reads a target's merged day and its context. The keys follow from
// target and date: a request names none that is read.
func readDay(ctx context.Context, store storage.Store, settings report.Settings, target, date, timezone string) (writtenDay, error) {
	if err := report.CheckTarget(target); err != nil {
		return writtenDay{}, err
	}
	if _, err := report.ParseDay(date, timezone); err != nil {
		return writtenDay{}, err
	}
	day := writtenDay{testbed: target != report.CloudTarget && settings.Profile(target).Testbed(), foreign: settings.FactoryIDs}
	key := report.DailyKey(store.Prefix, date, target)
	var err error
	if target == report.CloudTarget {
		var daily report.CloudDaily
		err = store.ReadJSON(ctx, key, &daily)
		day.doc = daily.Document(settings.Language)
	} else {
		var daily report.FactoryDaily
		err = store.ReadJSON(ctx, key, &daily)
		day.doc = daily.Document(settings.Language)
	}
	if err != nil {
		return writtenDay{}, err
	}
	day.context, err = store.Bucket.Get(ctx, report.ContextKey(store.Prefix, date, target), maxContext)
	return day, err
}
