package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"millrace/domain/report"
)

// Entry is a report as a list shows it.
type Entry struct {
	// Date is the local day that the report is on, Target a factory id or cloud-infra.
	Date   string
	Target string
	Key    string
	Size   int64
	// Generator and Verdict are empty where the report has no label.
	Generator    string
	Verdict      report.Verdict
	LastModified time.Time
	// Report and Metadata tell which of both objects there are.
	Report   bool
	Metadata bool
	HTML     bool
}

// Query bounds a list. Dates are local days, yyyy-mm-dd, both included; empty ones
// don't bound.
type Query struct {
	From, To string
	Target   string
	Limit    int
	// After is the last entry of the page before.
	After Position
}

// Position is a place in a list: newest days first, then by target.
type Position struct {
	Date, Target string
}

const (
	// daysAtOnce bounds how many days are listed side by side.
	daysAtOnce = 8
	// maxDays bounds how many days one page looks at.
	maxDays = 64
)

// List is a page of reports, newest days first. It costs one LIST call per day
// (of up to 1,000 objects) and a few to find the days; no object is read. Where
// more may follow, next is where the next page begins.
func (s Store) List(ctx context.Context, q Query) (page []Entry, next *Position, err error) {
	days, err := s.days(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	more := len(days) > maxDays
	days = days[:min(len(days), maxDays)]
	for batch := range slices.Chunk(days, daysAtOnce) {
		entries, err := s.listDays(ctx, batch, q)
		if err != nil {
			return nil, nil, err
		}
		page = append(page, entries...)
		if len(page) >= q.Limit {
			more = more || len(page) > q.Limit || batch[len(batch)-1] != days[len(days)-1]
			page = page[:q.Limit]
			break
		}
	}
	if !more {
		return page, nil, nil
	}
	if len(page) < q.Limit { // the days that were looked at are used up
		return page, &Position{Date: days[len(days)-1], Target: LastTarget}, nil
	}
	last := page[len(page)-1]
	return page, &Position{Date: last.Date, Target: last.Target}, nil
}

// LastTarget sorts after every target: a position past all of a day.
const LastTarget = "~"

func (s Store) listDays(ctx context.Context, days []string, q Query) ([]Entry, error) {
	found := make([][]Entry, len(days))
	group, ctx := errgroup.WithContext(ctx)
	for i, date := range days {
		group.Go(func() (err error) {
			found[i], err = s.day(ctx, date, q.Target)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	entries := slices.Concat(found...)
	return slices.DeleteFunc(entries, func(e Entry) bool {
		return !e.Report || (e.Date == q.After.Date && e.Target <= q.After.Target)
	}), nil
}

// Day lists what there is of each target's report on a local day, by target:
// also targets of which there is only a part.
func (s Store) Day(ctx context.Context, date string) ([]Entry, error) { return s.day(ctx, date, "") }

// Reported tells whether a target has a report on a day.
func (s Store) Reported(ctx context.Context, date, target string) (bool, error) {
	for object, err := range s.Bucket.List(ctx, report.MarkdownKey(s.Prefix, date, target), "") {
		return err == nil && object.Key == report.MarkdownKey(s.Prefix, date, target), err
	}
	return false, nil
}

func (s Store) day(ctx context.Context, date, target string) ([]Entry, error) {
	prefix := report.DayPrefix(s.Prefix, date) + "/"
	below := prefix
	if target != "" {
		below += target + "/"
	}
	d := dayListing{date: date, entries: map[string]*Entry{}, etags: map[string]string{}, labels: map[string]map[string]string{}}
	pages := s3.NewListObjectsV2Paginator(s.Bucket.Client, &s3.ListObjectsV2Input{Bucket: &s.Bucket.Name, Prefix: &below})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", below, err)
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			target, rest, ok := strings.Cut(strings.TrimPrefix(key, prefix), "/")
			if !ok || report.CheckTarget(target) != nil {
				continue
			}
			e := d.entry(target)
			switch rest {
			case "report.md":
				e.Report, e.Key, e.Size, e.LastModified = true, key, aws.ToInt64(o.Size), aws.ToTime(o.LastModified).UTC()
				d.etags[target] = plain(aws.ToString(o.ETag))
			case "report.html":
				e.HTML = true
			case "generation-metadata.json":
				e.Metadata = true
			default:
				d.label(target, rest)
			}
		}
	}
	return d.sorted(), nil
}

type dayListing struct {
	date    string
	entries map[string]*Entry
	etags   map[string]string
	// labels are by target and entity tag.
	labels map[string]map[string]string
}

func (d dayListing) entry(target string) *Entry {
	e, ok := d.entries[target]
	if !ok {
		e = &Entry{Date: d.date, Target: target}
		d.entries[target] = e
	}
	return e
}

func (d dayListing) label(target, rest string) {
	label, ok := strings.CutPrefix(rest, "labels/")
	if !ok {
		return
	}
	etag, text, _ := strings.Cut(label, "/")
	if d.labels[target] == nil {
		d.labels[target] = map[string]string{}
	}
	d.labels[target][etag] = text
}

func (d dayListing) sorted() []Entry {
	entries := make([]Entry, 0, len(d.entries))
	for target, e := range d.entries {
		generator, verdict, _ := strings.Cut(d.labels[target][d.etags[target]], ".")
		e.Generator, e.Verdict = generator, report.Verdict(verdict)
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Target, b.Target) })
	return entries
}

// days are the local days in the bounds of which there is anything, newest first,
// and one more than a page looks at.
func (s Store) days(ctx context.Context, q Query) ([]string, error) {
	to := q.To
	if q.After.Date != "" && (to == "" || q.After.Date < to) {
		to = q.After.Date
	}
	walk := dayWalk{store: s, from: q.From, to: to}
	err := walk.down(ctx, s.Prefix+"/", "", levels)
	return walk.days, err
}

// levels are how the parts of a date are named in keys.
var levels = []string{"yyyy=", "mm=", "dd="}

type dayWalk struct {
	store    Store
	from, to string
	days     []string
}

// down lists one level and goes into what can have days in the bounds.
func (w *dayWalk) down(ctx context.Context, prefix, date string, level []string) error {
	if len(level) == 0 {
		if day, err := time.Parse(time.DateOnly, date); err == nil && day.Format(time.DateOnly) == date {
			w.days = append(w.days, date)
		}
		return nil
	}
	below, _, err := w.store.Bucket.Children(ctx, prefix, "/")
	if err != nil {
		return err
	}
	slices.Sort(below)
	slices.Reverse(below)
	for _, child := range below {
		part, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimPrefix(child, prefix), "/"), level[0])
		if !ok || len(w.days) > maxDays {
			continue
		}
		joined := strings.TrimPrefix(date+"-"+part, "-")
		if !w.within(joined) {
			continue
		}
		if err := w.down(ctx, child, joined, level[1:]); err != nil {
			return err
		}
	}
	return nil
}

// within tells whether a year, month or day has days in the bounds.
func (w *dayWalk) within(date string) bool {
	return (w.to == "" || date <= w.to[:min(len(date), len(w.to))]) && (w.from == "" || date >= w.from[:min(len(date), len(w.from))])
}
