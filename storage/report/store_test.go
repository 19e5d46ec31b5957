package report_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/report"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	"millrace/storage/storagetest"
)

const prefix = "reports/daily"

func newStore(t *testing.T) (storage.Store, *storagetest.Calls) {
	t.Helper()
	bucket := storagetest.Bucket(t)
	var calls storagetest.Calls
	bucket.Client = s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle = true })
	return storage.Store{Bucket: bucket, Prefix: prefix}, &calls
}

// publish writes what a report leaves behind.
func publish(t *testing.T, s storage.Store, date, target, text string) {
	t.Helper()
	for hour := range 24 {
		require.NoError(t, s.Bucket.Put(t.Context(), report.HourKey(prefix, date, target, fmt.Sprintf("%02d", hour)), objects.JSON, []byte("{}")))
	}
	require.NoError(t, s.Bucket.Put(t.Context(), report.MarkdownKey(prefix, date, target), "text/markdown", []byte(text)))
	require.NoError(t, s.Bucket.Put(t.Context(), report.MetadataKey(prefix, date, target), objects.JSON, []byte("{}")))
}

func names(entries []storage.Entry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Date + " " + e.Target
	}
	return all
}

func TestListsAreNewestFirstAndPaged(t *testing.T) {
	s, calls := newStore(t)
	for _, date := range []string{"2025-12-31", "2026-01-01", "2026-01-02"} {
		publish(t, s, date, "factory-a", "# a "+date)
		publish(t, s, date, "cloud-infra", "# c "+date)
	}
	require.NoError(t, s.Bucket.Put(t.Context(), report.ContextKey(prefix, "2026-01-03", "factory-a"), objects.JSON, []byte("{}")))
	require.NoError(t, s.Bucket.Put(t.Context(), prefix+"/yyyy=2026/mm=01/dd=99/factory-a/report.md", "text/markdown", []byte("x")))
	require.NoError(t, s.Bucket.Put(t.Context(), prefix+"/yyyy=2026/mm=01/dd=02/Not-A-Target/report.md", "text/markdown", []byte("x")))
	require.NoError(t, s.Bucket.Put(t.Context(), prefix+"/yyyy=2026/mm=01/dd=02/delivery.json", objects.JSON, []byte("{}")))

	calls.Take()
	entries, next, err := s.List(t.Context(), storage.Query{Limit: 50})
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, []string{
		"2026-01-02 cloud-infra", "2026-01-02 factory-a", "2026-01-01 cloud-infra", "2026-01-01 factory-a", "2025-12-31 cloud-infra", "2025-12-31 factory-a",
	}, names(entries))
	require.Equal(t, map[string]int{"ListObjectsV2": 1 + 2 + 2 + 4}, calls.Take(), "years, months, days, and one for each day: nothing is read")
	require.EqualValues(t, len("# c 2026-01-02"), entries[0].Size)
	require.Equal(t, report.MarkdownKey(prefix, "2026-01-02", "cloud-infra"), entries[0].Key)
	require.WithinDuration(t, time.Now(), entries[0].LastModified, time.Minute)
	require.True(t, entries[0].Metadata)

	var all []string
	query := storage.Query{Limit: 1}
	for {
		page, next, err := s.List(t.Context(), query)
		require.NoError(t, err)
		all = append(all, names(page)...)
		if next == nil {
			break
		}
		query.After = *next
	}
	require.Equal(t, names(entries), all)
}

func TestListsAreBoundedByDaysAndTarget(t *testing.T) {
	s, _ := newStore(t)
	for _, date := range []string{"2025-12-31", "2026-01-01", "2026-02-01", "2026-02-28"} {
		publish(t, s, date, "factory-a", "a")
		publish(t, s, date, "factory-b", "b")
	}
	for _, c := range []struct {
		query storage.Query
		want  []string
	}{
		{storage.Query{From: "2026-01-01", To: "2026-02-01", Target: "factory-b"}, []string{"2026-02-01 factory-b", "2026-01-01 factory-b"}},
		{storage.Query{To: "2025-12-31", Target: "factory-a"}, []string{"2025-12-31 factory-a"}},
		{storage.Query{From: "2026-02-02", Target: "factory-a"}, []string{"2026-02-28 factory-a"}},
		{storage.Query{From: "2027-01-01"}, []string{}},
	} {
		c.query.Limit = 10
		entries, next, err := s.List(t.Context(), c.query)
		require.NoError(t, err)
		require.Nil(t, next)
		require.Equal(t, c.want, names(entries))
	}
}

func TestAPageLooksAtABoundedNumberOfDays(t *testing.T) {
	s, calls := newStore(t)
	var writers sync.WaitGroup
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := range 130 {
		writers.Go(func() {
			key := report.MarkdownKey(prefix, start.AddDate(0, 0, day).Format(time.DateOnly), "factory-a")
			_ = s.Bucket.Put(t.Context(), key, "text/markdown", []byte("x"))
		})
	}
	writers.Wait()
	calls.Take()
	page, next, err := s.List(t.Context(), storage.Query{Limit: 10, Target: "factory-z"})
	require.NoError(t, err)
	require.Empty(t, page)
	require.NotNil(t, next)
	require.LessOrEqual(t, calls.Take()["ListObjectsV2"], 64+1+1+4)
	page, next, err = s.List(t.Context(), storage.Query{Limit: 200, Target: "factory-a", After: *next})
	require.NoError(t, err)
	require.Equal(t, "2026-03-07", page[0].Date)
	require.Len(t, page, 63, "the day that the page before ended with is looked at again")
	page, next, err = s.List(t.Context(), storage.Query{Limit: 200, Target: "factory-a", After: *next})
	require.NoError(t, err)
	require.Nil(t, next)
	require.Equal(t, "2026-01-01", page[len(page)-1].Date)
}

func TestALabelIsThatOfTheReportThatStands(t *testing.T) {
	s, _ := newStore(t)
	const date = "2026-01-01"
	publish(t, s, date, "factory-a", "first")
	labelled := func(generator, verdict string) {
		t.Helper()
		entries, err := s.Day(t.Context(), date)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, generator, entries[0].Generator)
		require.Equal(t, report.Verdict(verdict), entries[0].Verdict)
	}
	labelled("", "")
	require.NoError(t, s.Label(t.Context(), date, "factory-a", "template", report.Danger))
	require.NoError(t, s.Label(t.Context(), date, "factory-a", "template", report.Danger))
	labelled("template", "danger")
	publish(t, s, date, "factory-a", "second")
	labelled("", "")
	require.NoError(t, s.Label(t.Context(), date, "factory-a", "model", report.Warning))
	labelled("model", "warning")
	publish(t, s, date, "factory-a", "first")
	labelled("template", "danger")
}

func TestReportsAreReadUnlessTheyAreKnown(t *testing.T) {
	s, _ := newStore(t)
	_, err := s.Read(t.Context(), "2026-01-01", "factory-a", storage.Markdown, "")
	require.ErrorIs(t, err, storage.ErrNotFound)
	publish(t, s, "2026-01-01", "factory-a", "# report")
	file, err := s.Read(t.Context(), "2026-01-01", "factory-a", storage.Markdown, "")
	require.NoError(t, err)
	require.Equal(t, "# report", string(file.Body))
	require.NotEmpty(t, file.ETag)
	_, err = s.Read(t.Context(), "2026-01-01", "factory-a", storage.Markdown, file.ETag)
	require.ErrorIs(t, err, storage.ErrNotModified)
	_, err = s.Read(t.Context(), "2026-01-01", "factory-a", storage.Markdown, `"other"`)
	require.NoError(t, err)
	_, err = s.Read(t.Context(), "2026-01-01", "factory-a", storage.HTML, "")
	require.ErrorIs(t, err, storage.ErrNotFound)
}

func TestADayIsToldOfOnce(t *testing.T) {
	s, _ := newStore(t)
	now := time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)
	results := map[string]string{"factory-a": "1"}
	claim := func(id string, now time.Time, force bool) storage.Claim {
		t.Helper()
		got, _, err := s.ClaimDelivery(t.Context(), "2026-01-01", id, results, now, force)
		require.NoError(t, err)
		return got
	}
	var told map[string]string
	settle := func(id, status string) {
		t.Helper()
		require.NoError(t, s.SettleDelivery(t.Context(), "2026-01-01", storage.Delivery{ID: id, Status: status, At: now, Told: told}))
	}
	require.Equal(t, storage.Claimed, claim("run-1", now, false))
	require.Equal(t, storage.Claimed, claim("run-1", now, false), "a retry goes on")
	require.Equal(t, storage.Busy, claim("run-2", now.Add(time.Minute), false))
	require.Equal(t, storage.Claimed, claim("run-2", now.Add(time.Hour), false), "whoever claimed it is gone")
	told = results
	settle("run-2", storage.DeliverySent)
	require.Equal(t, storage.Told, claim("run-2", now, false))
	require.Equal(t, storage.Told, claim("run-3", now.Add(24*time.Hour), false))
	require.Equal(t, storage.Claimed, claim("run-4", now, true))
	settle("run-4", storage.DeliveryAmbiguous)
	require.Equal(t, storage.Told, claim("run-4", now, true), "what was forced is sent once too")
	told = nil
	settle("run-4", storage.DeliveryFailed)
	require.Equal(t, storage.Claimed, claim("run-5", now, false), "nobody was told")
	told = results
	settle("run-5", storage.DeliverySent)
	results = map[string]string{"factory-a": "1", "factory-b": "1"}
	require.Equal(t, storage.Claimed, claim("run-6", now, false), "of one target nobody was told")
}

func TestOnlyOneOfManyRunsClaimsADay(t *testing.T) {
	s, _ := newStore(t)
	var claimed atomic.Int64
	var runs sync.WaitGroup
	for n := range 20 {
		runs.Go(func() {
			got, _, err := s.ClaimDelivery(t.Context(), "2026-01-01", fmt.Sprint("run-", n), nil, time.Now(), true)
			if err == nil && got == storage.Claimed {
				claimed.Add(1)
			}
		})
	}
	runs.Wait()
	require.EqualValues(t, 1, claimed.Load())
}
