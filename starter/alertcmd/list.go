package alertcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"millrace/domain/alert"
	"millrace/domain/factory"
	"millrace/platform/config"
	"millrace/starter/printing"
	storage "millrace/storage/alert"
)

// ListCommand lists the alert log.
type ListCommand struct {
	Table
	config.Factories

	Scope []string      `help:"Scopes to list: factory ids, cloud-infra, artifacts, observability, app.ID; all but the applications by default." placeholder:"SCOPE"`
	From  string        `help:"Instant (RFC 3339) from which to list; wins over --since." placeholder:"TIME"`
	To    string        `help:"Instant (RFC 3339) before which to list; now by default." placeholder:"TIME"`
	Since time.Duration `help:"How far back to list." default:"24h"`
	Limit int           `help:"Greatest number of lines." default:"100"`
	JSON  bool          `name:"json" help:"Print one JSON document."`
}

// maxLines bounds one list.
const maxLines = 5000

// Validate refuses settings that can't work.
func (c ListCommand) Validate() error {
	for _, scope := range c.Scope {
		if err := alert.CheckScope(scope); err != nil {
			return fmt.Errorf("--scope: %w", err)
		}
	}
	if c.Limit < 1 || c.Limit > maxLines {
		return fmt.Errorf("--limit: must be between 1 and %d", maxLines)
	}
	return c.Factories.Validate()
}

// Run prints the lines.
func (c ListCommand) Run(ctx context.Context) error {
	store, err := c.store(ctx)
	if err != nil {
		return err
	}
	return c.list(ctx, store, time.Now(), os.Stdout)
}

func (c ListCommand) list(ctx context.Context, store storage.Store, now time.Time, out io.Writer) error {
	q, err := c.query(now)
	if err != nil {
		return err
	}
	var records []alert.Record
	for {
		q.Limit = min(c.Limit-len(records), 200)
		page, next, err := store.Records(ctx, q)
		if err != nil {
			return err
		}
		records = append(records, page...)
		if q.Cursor = next; next == "" || len(records) >= c.Limit {
			break
		}
	}
	if c.JSON {
		return printing.JSON(out, map[string]any{"alerts": records})
	}
	return printRecords(out, records)
}

func (c ListCommand) query(now time.Time) (storage.Query, error) {
	q := storage.Query{Scopes: c.Scope, To: now, Now: now}
	if len(q.Scopes) == 0 {
		q.Scopes = append(append(q.Scopes, c.FactoryIDs...), alert.ScopeCloud, alert.ScopeArtifacts, alert.ScopeObservability)
	}
	var err error
	if c.To != "" {
		if q.To, err = factory.ParseInstant(c.To); err != nil {
			return q, fmt.Errorf("--to: must be an RFC 3339 instant with a zone")
		}
	}
	q.From = q.To.Add(-c.Since)
	if c.From != "" {
		if q.From, err = factory.ParseInstant(c.From); err != nil {
			return q, fmt.Errorf("--from: must be an RFC 3339 instant with a zone")
		}
	}
	if !q.From.Before(q.To) {
		return q, fmt.Errorf("--from: must be before --to")
	}
	return q, nil
}

func printRecords(out io.Writer, records []alert.Record) error {
	lines := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, "AT\tSCOPE\tOUTCOME\tSEVERITY\tREASON\tWHY\tTIMES\tDETAIL") //nolint:errcheck // Flush tells
	for _, r := range records {
		fmt.Fprintf(lines, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.At, r.Scope, r.Outcome, r.Severity, r.Reason, r.Why, r.Count, r.Detail) //nolint:errcheck // Flush tells
	}
	if err := lines.Flush(); err != nil {
		return fmt.Errorf("print alerts: %w", err)
	}
	return nil
}
