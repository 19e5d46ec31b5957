package reportcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/domain/report"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Action is what a backfill does about one report.
type Action string

// The actions.
const (
	// Skip leaves a report alone that is whole.
	Skip Action = "skip"
	// Generate makes it.
	Generate Action = "generate"
	// ForceNeeded leaves alone what is there only in part, report or metadata: only
	// --force replaces it.
	ForceNeeded Action = "force-needed"
)

// actionOf decides by what there is of a report.
func actionOf(hasReport, hasMetadata, force bool) Action {
	switch {
	case force, !hasReport && !hasMetadata:
		return Generate
	case hasReport && hasMetadata:
		return Skip
	}
	return ForceNeeded
}

// asked are the reports that the options name, newest last and each once.
func (c *BackfillCommand) asked() ([]workflows.TargetDate, error) {
	targets := c.Targets
	if len(targets) == 0 {
		targets = c.targets()
	}
	problems := []error{checkTargets("--targets", targets)}
	var all []workflows.TargetDate
	if (c.DateFrom == "") != (c.DateTo == "") {
		problems = append(problems, errors.New("--date-from, --date-to: must be given together"))
	} else if c.DateFrom != "" {
		dates, err := days(c.DateFrom, c.DateTo)
		problems = append(problems, err)
		for _, date := range dates {
			for _, target := range targets {
				all = append(all, workflows.TargetDate{Target: target, Date: date})
			}
		}
	}
	for _, pair := range c.TargetDates {
		target, date, _ := strings.Cut(pair, ":")
		problems = append(problems, checkTargets("--target-dates", []string{target}), checkDay("--target-dates", date))
		all = append(all, workflows.TargetDate{Target: target, Date: date})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	all = unique(all)
	switch {
	case len(all) == 0:
		return nil, errors.New("--date-from and --date-to, or --target-dates: are required")
	case len(all) > workflows.MaxBackfill:
		return nil, fmt.Errorf("%d reports are asked for, must be at most %d: split the range", len(all), workflows.MaxBackfill)
	}
	return all, nil
}

// days are the days from one to another, both included.
func days(from, to string) ([]string, error) {
	if err := errors.Join(checkDay("--date-from", from), checkDay("--date-to", to)); err != nil {
		return nil, err
	}
	first, _ := time.Parse(time.DateOnly, from)
	last, _ := time.Parse(time.DateOnly, to)
	if last.Before(first) {
		return nil, errors.New("--date-from: must not be after --date-to")
	}
	var all []string
	for day := first; !day.After(last) && len(all) <= workflows.MaxBackfill; day = day.AddDate(0, 0, 1) {
		all = append(all, day.Format(time.DateOnly))
	}
	return all, nil
}

func unique(all []workflows.TargetDate) []workflows.TargetDate {
	seen := make(map[workflows.TargetDate]bool, len(all))
	return slices.DeleteFunc(all, func(item workflows.TargetDate) bool {
		again := seen[item]
		seen[item] = true
		return again
	})
}

// daysAtOnce bounds the days that are listed side by side.
const daysAtOnce = 8

// plan decides about each report by one listing per day.
func (c *BackfillCommand) plan(ctx context.Context, store storage.Store, asked []workflows.TargetDate) ([]Item, error) {
	var dates []string
	for _, item := range asked {
		if !slices.Contains(dates, item.Date) {
			dates = append(dates, item.Date)
		}
	}
	listed := make([][]storage.Entry, len(dates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(daysAtOnce)
	for i, date := range dates {
		group.Go(func() (err error) {
			listed[i], err = store.Day(ctx, date)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	items := make([]Item, len(asked))
	for i, item := range asked {
		entries := listed[slices.Index(dates, item.Date)]
		at := slices.IndexFunc(entries, func(e storage.Entry) bool { return e.Target == item.Target })
		var have storage.Entry
		if at >= 0 {
			have = entries[at]
		}
		items[i] = Item{
			Target: item.Target, Date: item.Date, Action: actionOf(have.Report, have.Metadata, c.Force),
			ReportKey: report.MarkdownKey(store.Prefix, item.Date, item.Target),
		}
	}
	return items, nil
}
