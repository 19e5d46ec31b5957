package status

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// JSON writes the report as one indented document.
func (r Report) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(r); err != nil {
		return fmt.Errorf("print status: %w", err)
	}
	return nil
}

// Text writes the report as tables for people.
func (r Report) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	p := printer{w: table, at: r.At}
	p.row("SCHEDULE", "STATE", "LAST RUN", "STATUS", "NEXT RUN", "LATE", "MISSED")
	for _, s := range r.Schedules {
		p.row(s.ID, withNote(s.State, s.Note), p.since(s.LastRunAt), dash(s.LastRunStatus), p.until(s.NextRunAt), seconds(&s.LatenessSeconds), fmt.Sprint(s.Missed))
	}
	p.row()
	p.row("WORKFLOW", "STATE", "STARTED", "ACTIVITY", "ATTEMPT", "HEARTBEAT", "LAST FAILURE")
	for _, x := range r.Workflows {
		p.row(x.ID, x.State, p.since(x.StartedAt), dash(x.Activity), dash(count(x.Attempt)), p.since(x.LastHeartbeatAt), dash(oneLine(x.LastFailure)))
	}
	p.row()
	p.row("QUEUE", "VISIBLE", "IN FLIGHT", "OLDEST", "")
	for _, q := range r.Queues {
		p.row(q.Name, number(q.MessagesVisible), number(q.MessagesInFlight), seconds(q.OldestAgeSeconds), deadLetters(q))
	}
	p.row()
	p.row("FACTORY", "FACTORY STATE", "INFRA STATE", "PIPELINE", "RISK", "SCORE", "UPDATED")
	for _, f := range r.Factories {
		if !f.Found {
			p.row(f.FactoryID, "never heard of")
			continue
		}
		score := "-"
		if f.RiskScore != nil {
			score = f.RiskScore.String()
		}
		p.row(f.FactoryID, seconds(f.FactoryStateAgeSeconds), seconds(f.InfraStateAgeSeconds), string(f.PipelineStatus), dash(f.RiskLevel), score, p.since(f.UpdatedAt))
	}
	for _, problem := range r.Problems {
		p.row()
		p.row("PROBLEM " + oneLine(problem))
	}
	if p.err != nil {
		return fmt.Errorf("print status: %w", p.err)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print status: %w", err)
	}
	return nil
}

// printer writes rows and keeps the first error.
type printer struct {
	w   io.Writer
	at  time.Time
	err error
}

func (p *printer) row(cells ...string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.Join(cells, "\t"))
	}
}

func (p *printer) since(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return p.at.Sub(*at).Round(time.Second).String() + " ago"
}

func (p *printer) until(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return "in " + at.Sub(p.at).Round(time.Second).String()
}

func seconds(n *int64) string {
	if n == nil {
		return "-"
	}
	return (time.Duration(*n) * time.Second).String()
}

func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func count(n int32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func withNote(state, note string) string {
	if note == "" {
		return state
	}
	return state + " (" + oneLine(note) + ")"
}

func deadLetters(q Queue) string {
	if q.IsDLQ && q.MessagesVisible != nil && *q.MessagesVisible > 0 {
		return "dead letters wait"
	}
	return ""
}

// oneLine keeps a text from breaking the table.
func oneLine(text string) string {
	const longest = 100
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	return text
}
