package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/domain/report"
	"millrace/gateway/server"
	"millrace/storage/objects"
	reportstore "millrace/storage/report"
	"millrace/storage/storagetest"
)

// library is a server with reports in a bucket of its own.
type library struct {
	*fixture
	store reportstore.Store
	calls *storagetest.Calls
	token string
}

func newLibrary(t *testing.T) library {
	t.Helper()
	bucket, calls := storagetest.Bucket(t), &storagetest.Calls{}
	bucket.Client = s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle = true })
	store := reportstore.Store{Bucket: bucket, Prefix: "reports/daily"}
	f := newFixture(t, server.Reports(store))
	_, token := f.issue("user:reader", monitoring.ScopeRead)
	return library{fixture: f, store: store, calls: calls, token: token}
}

func (l library) put(key, contentType, body string) {
	l.t.Helper()
	require.NoError(l.t, l.store.Bucket.Put(l.t.Context(), key, contentType, []byte(body)))
}

// file stores a whole report.
func (l library) file(date, target string) {
	l.t.Helper()
	l.put(report.MarkdownKey("reports/daily", date, target), "text/markdown", "# "+target+" "+date)
	l.put(report.HTMLKey("reports/daily", date, target), "text/html", "<h1>"+target+"</h1>")
	l.put(report.MetadataKey("reports/daily", date, target), objects.JSON, `{"generator":"template"}`)
}

func (l library) list(query string) server.ReportList {
	l.t.Helper()
	a := l.call(http.MethodGet, "/v1/reports"+query, l.token, "")
	require.Equal(l.t, http.StatusOK, a.Status, string(a.Body))
	var list server.ReportList
	a.decode(&list)
	return list
}

func TestReportsAreListedWithoutReadingThem(t *testing.T) {
	l := newLibrary(t)
	l.file("2026-01-01", "factory-a")
	l.file("2026-01-01", "cloud-infra")
	l.file("2026-01-02", "factory-a")
	require.NoError(t, l.store.Label(t.Context(), "2026-01-02", "factory-a", "template", report.Danger))
	l.calls.Take()
	list := l.list("")
	require.Equal(t, map[string]int{"ListObjectsV2": 3 + 2}, l.calls.Take())
	require.Len(t, list.Reports, 3)
	first := list.Reports[0]
	require.Equal(t, []string{"2026-01-02", "factory-a", "template", "danger"}, []string{first.ReportDate, first.Target, *first.Generator, *first.Verdict})
	require.Equal(t, "reports/daily/yyyy=2026/mm=01/dd=02/factory-a/report.md", first.S3Key)
	require.EqualValues(t, len("# factory-a 2026-01-02"), first.SizeBytes)
	require.True(t, first.HTML)
	require.Nil(t, list.Reports[1].Generator, "nobody regenerates old reports to tell")
	require.Empty(t, list.NextCursor)

	page := l.list("?limit=2")
	require.Len(t, page.Reports, 2)
	rest := l.list("?limit=2&cursor=" + page.NextCursor)
	require.Equal(t, "factory-a", rest.Reports[0].Target)
	require.Empty(t, rest.NextCursor)
	require.Len(t, l.list("?target=factory-a&from=2026-01-02&to=2026-01-31").Reports, 1)
	require.Empty(t, l.list("?to=2025-12-31").Reports)
}

func TestAListThatCannotBeMeantIsRefused(t *testing.T) {
	l := newLibrary(t)
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for query, field := range map[string]string{
		"?from=yesterday": "query.from", "?to=2026-02-30": "query.to", "?from=2026-01-02&to=2026-01-01": "query.from",
		"?target=..": "query.target", "?target=A": "query.target", "?limit=0": "query.limit", "?limit=201": "query.limit",
		"?cursor=x": "query.cursor", "?cursor=" + cursor("2026-01-01/../x"): "query.cursor", "?cursor=" + cursor("2026-01-01"): "query.cursor", "?day=1": "query",
	} {
		p := l.call(http.MethodGet, "/v1/reports"+query, l.token, "").problem(http.StatusBadRequest, "invalid-input")
		require.NotEmpty(t, p.Errors, query)
		require.Contains(t, p.Errors[0].Field, field, query)
	}
}

func TestAReportIsReadInTheFormThatIsWanted(t *testing.T) {
	l := newLibrary(t)
	l.file("2026-01-01", "factory-a")
	const path = "/v1/reports/2026-01-01/factory-a"
	for _, c := range []struct{ query, accept, contentType, body string }{
		{"", "*/*", "text/markdown; charset=utf-8", "# factory-a 2026-01-01"},
		{"", "", "text/markdown; charset=utf-8", "# factory-a 2026-01-01"},
		{"", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", "<h1>factory-a</h1>"},
		{"", "text/html;q=0.5, text/markdown", "text/markdown; charset=utf-8", "# factory-a 2026-01-01"},
		{"?format=html", "*/*", "text/html; charset=utf-8", "<h1>factory-a</h1>"},
		{"?format=markdown", "text/html", "text/markdown; charset=utf-8", "# factory-a 2026-01-01"},
		{"?format=metadata", "*/*", "application/json", `{"generator":"template"}`},
	} {
		a := l.call(http.MethodGet, path+c.query, l.token, "", "Accept", c.accept)
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		require.Equal(t, c.contentType, a.Header.Get("Content-Type"), "%+v", c)
		require.Equal(t, c.body, string(a.Body))
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "private, no-cache", a.Header.Get("Cache-Control"))
		require.NotEmpty(t, a.Header.Get("ETag"))
		_, err := http.ParseTime(a.Header.Get("Last-Modified"))
		require.NoError(t, err)
		policy := a.Header.Get("Content-Security-Policy")
		if c.contentType == "text/html; charset=utf-8" {
			for _, rule := range []string{"sandbox", "default-src 'none'", "frame-ancestors 'self'", "base-uri 'none'"} {
				require.Contains(t, policy, rule)
			}
			require.NotContains(t, policy, "script-src")
		}
	}
}

func TestAReportThatTheCallerHasIsNotSentAgain(t *testing.T) {
	l := newLibrary(t)
	l.file("2026-01-01", "factory-a")
	const path = "/v1/reports/2026-01-01/factory-a"
	tag := l.call(http.MethodGet, path, l.token, "").Header.Get("ETag")
	again := l.call(http.MethodGet, path, l.token, "", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, again.Status)
	require.Equal(t, tag, again.Header.Get("ETag"))
	require.Empty(t, again.Body)
	require.Equal(t, http.StatusNotModified, l.call(http.MethodGet, path, l.token, "", "If-None-Match", "W/"+tag).Status)
	for _, other := range []string{`"0"`, "*", tag + `, "x"`, "junk"} {
		require.Equal(t, http.StatusOK, l.call(http.MethodGet, path, l.token, "", "If-None-Match", other).Status, other)
	}
	require.Equal(t, http.StatusOK, l.call(http.MethodGet, path+"?format=html", l.token, "", "If-None-Match", tag).Status, "another form is another thing")
	l.put(report.MarkdownKey("reports/daily", "2026-01-01", "factory-a"), "text/markdown", "# again")
	require.Equal(t, http.StatusOK, l.call(http.MethodGet, path, l.token, "", "If-None-Match", tag).Status)
}

func TestAReportThatIsNotThereIsToldSo(t *testing.T) {
	l := newLibrary(t)
	l.put(report.MarkdownKey("reports/daily", "2026-01-01", "factory-a"), "text/markdown", "# old")
	l.call(http.MethodGet, "/v1/reports/2026-01-02/factory-a", l.token, "").problem(http.StatusNotFound, "not-found")
	l.call(http.MethodGet, "/v1/reports/2026-01-01/factory-a?format=html", l.token, "").problem(http.StatusNotFound, "not-found")
	for _, path := range []string{"/v1/reports/2026-02-30/factory-a", "/v1/reports/20260101/factory-a", "/v1/reports/2026-01-01/Factory", "/v1/reports/2026-01-01/a%2Fb", "/v1/reports/2026-01-01/..%2f..%2fraw"} {
		l.call(http.MethodGet, path, l.token, "").problem(http.StatusBadRequest, "invalid-input")
	}
	l.call(http.MethodGet, "/v1/reports/2026-01-01/factory-a?format=pdf", l.token, "").problem(http.StatusBadRequest, "invalid-input")
}

func TestReportsNeedTheScopeRead(t *testing.T) {
	l := newLibrary(t)
	_, writer := l.issue("user:writer", monitoring.ScopeWrite)
	for _, path := range []string{"/v1/reports", "/v1/reports/2026-01-01/cloud-infra"} {
		l.call(http.MethodGet, path, writer, "").problem(http.StatusForbidden, "forbidden")
		l.call(http.MethodGet, path, "", "").problem(http.StatusUnauthorized, "unauthenticated")
	}
}

// downReports is a store that does not answer.
type downReports struct{}

var errDown = &smithy.OperationError{ServiceID: "S3", OperationName: "ListObjectsV2", Err: errors.New("no answer")}

func (downReports) List(context.Context, reportstore.Query) ([]reportstore.Entry, *reportstore.Position, error) {
	return nil, nil, errDown
}

func (downReports) Read(ctx context.Context, _, _ string, _ reportstore.Format, _ string) (reportstore.File, error) {
	<-ctx.Done()
	return reportstore.File{}, ctx.Err()
}

func TestABucketThatDoesNotAnswerIsToldSo(t *testing.T) {
	store, calls := newTable(t)
	f := start(t, store, calls, newRing(t, "k1"), server.Config{Timeout: 200 * time.Millisecond}, server.Reports(downReports{}))
	_, token := f.issue("user:reader", monitoring.ScopeRead)
	f.call(http.MethodGet, "/v1/reports", token, "").problem(http.StatusGatewayTimeout, "store-unavailable")
	f.call(http.MethodGet, "/v1/reports/2026-01-01/factory-a", token, "").problem(http.StatusGatewayTimeout, "store-unavailable")
}
