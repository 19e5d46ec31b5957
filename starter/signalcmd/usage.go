package signalcmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"millrace/domain/exact"
)

// UsageCommand shows what an application used.
type UsageCommand struct {
	Gateway
	App   string `arg:"" help:"Application."`
	Month string `help:"Month, such as 2026-05; by default the current one, UTC." placeholder:"MONTH"`
}

const monthLayout = "2006-01"

// Run prints a line for each day of the month and one for the month.
func (c *UsageCommand) Run(ctx context.Context) error {
	month := c.Month
	if month == "" {
		month = time.Now().UTC().Format(monthLayout)
	}
	return c.usage(ctx, month, os.Stdout)
}

type aggregates struct {
	Aggregates []struct {
		Granularity string
		Start       time.Time
		Counters    map[string]exact.Decimal
	}
	NextCursor string
}

func (c *UsageCommand) usage(ctx context.Context, month string, out io.Writer) error {
	first, err := time.Parse(monthLayout, month)
	if err != nil {
		return fmt.Errorf("--month: must be a month such as 2026-05")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tsignals\terrors\ttokens\tcost (USD)\t") //nolint:errcheck // told by Flush
	for _, granularity := range []string{"daily", "monthly"} {
		query := url.Values{"granularity": {granularity}, "from": {month}, "to": {first.AddDate(0, 1, 0).Format(monthLayout)}}
		for {
			var page aggregates
			if err := c.call(ctx, http.MethodGet, "/v1/apps/"+url.PathEscape(c.App)+"/aggregates?"+query.Encode(), nil, &page); err != nil {
				return err
			}
			for _, a := range page.Aggregates {
				label := a.Start.Format(time.DateOnly)
				if granularity == "monthly" {
					label = month
				}
				n := a.Counters
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", label, n["signal_count"], n["error_count"], n["total_tokens"], n["total_cost_usd"]) //nolint:errcheck // told by Flush
			}
			if page.NextCursor == "" {
				break
			}
			query.Set("cursor", page.NextCursor)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print usage: %w", err)
	}
	return nil
}
