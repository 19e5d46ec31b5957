package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	reportstore "millrace/storage/report"
)

type getReportInput struct {
	Date        string             `path:"date" maxLength:"10" doc:"Local day, such as 2026-01-31."`
	Target      string             `path:"target" maxLength:"64" doc:"A factory id or cloud-infra."`
	Format      reportstore.Format `query:"format" enum:"markdown,html,metadata" doc:"Form of the report; absent goes by the header Accept, and else is markdown."`
	Accept      string             `header:"Accept" maxLength:"1024"`
	IfNoneMatch string             `header:"If-None-Match" maxLength:"256" doc:"ETag that the caller has."`
}

func (p reportRoutes) get(ctx context.Context, in *getReportInput) (*huma.StreamResponse, error) {
	if !isDay(in.Date) {
		return nil, invalidInput("path.date", "must be a day such as 2026-01-31")
	}
	if err := checkReportTarget("path.target", in.Target); err != nil {
		return nil, err
	}
	format := in.Format
	if format == "" {
		format = formatOf(in.Accept)
	}
	tag := entityTag(in.IfNoneMatch)
	file, err := p.reader.Read(ctx, in.Date, in.Target, format, tag)
	switch {
	case errors.Is(err, reportstore.ErrNotModified):
		return &huma.StreamResponse{Body: func(ctx huma.Context) {
			describeReport(ctx, format, reportstore.File{ETag: tag})
			ctx.SetStatus(http.StatusNotModified)
		}}, nil
	case errors.Is(err, reportstore.ErrNotFound):
		return nil, NewProblem(http.StatusNotFound, "not-found", "there is no such report in this form")
	case err != nil:
		return nil, err
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		describeReport(ctx, format, file)
		ctx.SetHeader("Content-Type", contentTypes[format])
		ctx.SetHeader("Content-Length", strconv.Itoa(len(file.Body)))
		ctx.SetStatus(http.StatusOK)
		_, _ = ctx.BodyWriter().Write(file.Body) // the client is gone when this fails
	}}, nil
}

var contentTypes = map[reportstore.Format]string{
	reportstore.Markdown: markdownType + "; charset=utf-8", reportstore.HTML: htmlType + "; charset=utf-8", reportstore.Metadata: jsonType,
}

// reportPolicy lets a report show its own styles and charts and do nothing else:
// no script, no request, no form, and no origin of its own.
const reportPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

func describeReport(ctx huma.Context, format reportstore.Format, file reportstore.File) {
	ctx.SetHeader("ETag", file.ETag)
	ctx.SetHeader("Cache-Control", privateCache)
	ctx.SetHeader("Vary", "Accept")
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	if !file.LastModified.IsZero() {
		ctx.SetHeader("Last-Modified", file.LastModified.Format(http.TimeFormat))
	}
	if format == reportstore.HTML {
		ctx.SetHeader("Content-Security-Policy", reportPolicy)
		ctx.SetHeader("Referrer-Policy", "no-referrer")
	}
}

// entityTag is the one tag of an If-None-Match header that the store compares; a
// list of tags, or any (*), is not compared.
func entityTag(header string) string {
	tag := strings.TrimPrefix(strings.TrimSpace(header), "W/")
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' || strings.Count(tag, `"`) != 2 {
		return ""
	}
	return tag
}

// formatOf is the form that a client prefers by its Accept header: HTML where it
// is wanted more than Markdown, as browsers want it.
func formatOf(accept string) reportstore.Format {
	html, markdown := 0.0, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		media, parameters, _ := strings.Cut(part, ";")
		weight := weightOf(parameters)
		switch strings.ToLower(strings.TrimSpace(media)) {
		case htmlType:
			html = max(html, weight)
		case markdownType, "text/plain":
			markdown = max(markdown, weight)
		}
	}
	if html > markdown {
		return reportstore.HTML
	}
	return reportstore.Markdown
}

// weightOf is the q of a part of an Accept header (RFC 9110, 12.4.2).
func weightOf(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if weight, err := strconv.ParseFloat(value, 64); err == nil {
			return weight
		}
	}
	return 1
}
