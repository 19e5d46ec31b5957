package server

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/domain/monitoring"
	"millrace/domain/report"
	reportstore "millrace/storage/report"
)

// ReportReader is what the routes of reports need of their store.
type ReportReader interface {
	List(ctx context.Context, q reportstore.Query) ([]reportstore.Entry, *reportstore.Position, error)
	Read(ctx context.Context, date, target string, format reportstore.Format, ifNoneMatch string) (reportstore.File, error)
}

// ReportEntry is a report in a list.
type ReportEntry struct {
	ReportDate   string    `json:"report_date" format:"date" doc:"The local day that the report is on."`
	Target       string    `json:"target" doc:"A factory id or cloud-infra."`
	Generator    *string   `json:"generator" enum:"model,template" doc:"Who worded it; null where that is not known."`
	Verdict      *string   `json:"verdict" enum:"normal,warning,danger" doc:"The judgement of the day; null where it is not known."`
	S3Key        string    `json:"s3_key"`
	SizeBytes    int64     `json:"size_bytes"`
	LastModified time.Time `json:"last_modified"`
	HTML         bool      `json:"html" doc:"There is an HTML form too."`
}

// ReportList is a page of reports, newest days first.
type ReportList struct {
	Reports    []ReportEntry `json:"reports" nullable:"false"`
	NextCursor string        `json:"nextCursor,omitempty" doc:"Where the next page begins; absent at the end. A page may be short, or empty, before the end."`
}

type listReportsInput struct {
	From   string `query:"from" maxLength:"10" doc:"First local day, such as 2026-01-31."`
	To     string `query:"to" maxLength:"10" doc:"Last local day, itself included."`
	Target string `query:"target" maxLength:"64" doc:"A factory id or cloud-infra."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"Greatest number of reports in the page."`
	Cursor string `query:"cursor" maxLength:"200" doc:"The nextCursor of the page before; the other parameters stay the same."`
}

type reportListOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         ReportList
}

type reportRoutes struct{ reader ReportReader }

// Reports adds the reads of the daily reports. They read the bucket only, so that
// they also serve reports that nothing makes any more.
func Reports(reader ReportReader) Routes {
	p := reportRoutes{reader: reader}
	return func(r *Router) {
		Handle(r, Operation{
			ID: "list-reports", Method: http.MethodGet, Path: "/v1/reports", Tag: "reports", Scope: monitoring.ScopeRead,
			Summary:     "List the daily reports",
			Description: "Newest days first, then by target. A page looks at 64 days at most, so that it may be short before the end.",
		}, p.list)
		Handle(r, Operation{
			ID: "get-report", Method: http.MethodGet, Path: "/v1/reports/{date}/{target}", Tag: "reports", Scope: monitoring.ScopeRead,
			Summary: "Read a daily report",
			Description: "Markdown, unless the parameter format or the header Accept asks for the HTML form, which is one file without scripts. " +
				"Metadata tell how the report came about. If-None-Match is understood.",
			Problems: []int{http.StatusNotFound}, Answers: reportAnswers(),
		}, p.get)
	}
}

// Media types of reports.
const (
	markdownType = "text/markdown"
	htmlType     = "text/html"
	jsonType     = "application/json"
)

func reportAnswers() map[int]*huma.Response {
	headers := map[string]*huma.Param{
		"ETag":          {Description: "Changes with the report.", Schema: &huma.Schema{Type: huma.TypeString}},
		"Last-Modified": {Description: "When the report was written.", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	return map[int]*huma.Response{
		http.StatusOK: {Description: "The report.", Headers: headers, Content: map[string]*huma.MediaType{
			markdownType: text, htmlType: text, jsonType: {Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}},
		}},
		http.StatusNotModified: {Description: "The report is what the caller has.", Headers: headers},
	}
}

func (p reportRoutes) list(ctx context.Context, in *listReportsInput) (*reportListOutput, error) {
	q := reportstore.Query{From: in.From, To: in.To, Target: in.Target, Limit: in.Limit}
	for field, date := range map[string]string{"query.from": in.From, "query.to": in.To} {
		if date != "" && !isDay(date) {
			return nil, invalidInput(field, "must be a day such as 2026-01-31")
		}
	}
	if in.From != "" && in.To != "" && in.From > in.To {
		return nil, invalidInput("query.from", "must not be after to")
	}
	if in.Target != "" {
		if err := checkReportTarget("query.target", in.Target); err != nil {
			return nil, err
		}
	}
	if in.Cursor != "" {
		after, err := parseReportCursor(in.Cursor)
		if err != nil {
			return nil, err
		}
		q.After = after
	}
	entries, next, err := p.reader.List(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &reportListOutput{CacheControl: privateCache, Body: ReportList{Reports: make([]ReportEntry, len(entries))}}
	for i, e := range entries {
		out.Body.Reports[i] = ReportEntry{
			ReportDate: e.Date, Target: e.Target, Generator: known(e.Generator), Verdict: known(string(e.Verdict)),
			S3Key: e.Key, SizeBytes: e.Size, LastModified: e.LastModified, HTML: e.HTML,
		}
	}
	if next != nil {
		out.Body.NextCursor = reportCursor(*next)
	}
	return out, nil
}

// privateCache lets a browser keep an answer for its user, and ask before use.
const privateCache = "private, no-cache"

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func isDay(text string) bool {
	day, err := time.Parse(time.DateOnly, text)
	return err == nil && day.Format(time.DateOnly) == text
}

func checkReportTarget(field, target string) error {
	var invalid *report.InvalidError
	if err := report.CheckTarget(target); errors.As(err, &invalid) {
		return invalidInput(field, invalid.Rule)
	}
	return nil
}

func reportCursor(after reportstore.Position) string {
	return base64.RawURLEncoding.EncodeToString([]byte(after.Date + "/" + after.Target))
}

func parseReportCursor(cursor string) (reportstore.Position, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	date, target, ok := strings.Cut(string(text), "/")
	if err != nil || !ok || !isDay(date) || (target != reportstore.LastTarget && report.CheckTarget(target) != nil) {
		return reportstore.Position{}, invalidInput("query.cursor", "must be the nextCursor of this list")
	}
	return reportstore.Position{Date: date, Target: target}, nil
}
