package slack_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/platform/slack"
	"millrace/platform/slack/slacktest"
)

const patience = 300 * time.Millisecond

func failureOf(t *testing.T, err error) *slack.Error {
	t.Helper()
	var e *slack.Error
	require.ErrorAs(t, err, &e)
	require.NotContains(t, err.Error(), "SECRETKEY", "no webhook shows in an error")
	require.NotContains(t, err.Error(), "127.0.0.1")
	require.NotContains(t, err.Error(), slacktest.Token)
	return e
}

func TestAWebhookPostsText(t *testing.T) {
	server := slacktest.New(t)
	require.NoError(t, slack.Client{}.Webhook(t.Context(), server.Hook("B1"), "위험 & <b>"))
	require.Equal(t, []slacktest.Message{{Hook: "B1", Text: "위험 & <b>", TS: "1700000000.000001"}}, server.Messages())
}

func TestEachFailureTellsWhatARetryMayDo(t *testing.T) {
	for name, test := range map[string]struct {
		fault  slacktest.Fault
		want   slack.Error
		posted int
	}{
		"rate limited":                {slacktest.Fault{Status: 429, RetryAfter: "7"}, slack.Error{Failure: slack.Limited, Status: 429, RetryAfter: 7 * time.Second}, 0},
		"rate limited for ages":       {slacktest.Fault{Status: 429, RetryAfter: "999999"}, slack.Error{Failure: slack.Limited, Status: 429, RetryAfter: 10 * time.Minute}, 0},
		"rate limited without a time": {slacktest.Fault{Status: 429}, slack.Error{Failure: slack.Limited, Status: 429, RetryAfter: 30 * time.Second}, 0},
		"an error of Slack":           {slacktest.Fault{Status: 503, Code: "rollup_error"}, slack.Error{Failure: slack.Unavailable, Status: 503, Code: "rollup_error"}, 0},
		"a refused payload":           {slacktest.Fault{Status: 400, Code: "invalid_payload"}, slack.Error{Failure: slack.Rejected, Status: 400, Code: "invalid_payload"}, 0},
		"a removed webhook":           {slacktest.Fault{Status: 404, Code: "no_service"}, slack.Error{Failure: slack.Rejected, Status: 404, Code: "no_service"}, 0},
		"an answer that is no word":   {slacktest.Fault{Status: 403, Code: "<html>hook SECRETKEY"}, slack.Error{Failure: slack.Rejected, Status: 403}, 0},
		"a redirect is not followed":  {slacktest.Fault{Status: 302}, slack.Error{Failure: slack.Rejected, Status: 302}, 0},
		"no answer, message lost":     {slacktest.Fault{Swallow: true, Lost: true}, slack.Error{Failure: slack.Unknown, Cause: "timeout"}, 0},
		"no answer, message posted":   {slacktest.Fault{Swallow: true}, slack.Error{Failure: slack.Unknown, Cause: "timeout"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := slacktest.New(t)
			server.Fail(test.fault)
			err := slack.Client{Timeout: patience}.Webhook(t.Context(), server.Hook("B1"), "x")
			require.Equal(t, test.want, *failureOf(t, err))
			require.Len(t, server.Messages(), test.posted)
			require.Equal(t, 1, server.Requests(), "one attempt only")
		})
	}
}

func TestARefusedConnectionSentNothing(t *testing.T) {
	server := slacktest.New(t)
	hook := server.Hook("B1")
	server.Close()
	e := failureOf(t, slack.Client{}.Webhook(t.Context(), hook, "x"))
	require.Equal(t, slack.Unreachable, e.Failure)
}

func TestATimeoutBeforeSendingSentNothing(t *testing.T) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	err := slack.Client{HTTP: transport, Timeout: patience}.Webhook(t.Context(), "https://hooks.example.com/services/T/B/SECRETKEY", "x")
	require.Equal(t, slack.Error{Failure: slack.Unreachable, Cause: "timeout"}, *failureOf(t, err))
}

func TestAConnectionCutAfterSendingIsUnknown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	e := failureOf(t, slack.Client{}.Webhook(t.Context(), server.URL+"/services/T/B/SECRETKEY", "x"))
	require.Equal(t, slack.Unknown, e.Failure)
}

func TestWebhooksAreHTTPSExceptOnThisMachine(t *testing.T) {
	for _, hook := range []string{"http://hooks.slack.com/services/T/B/SECRETKEY", "ftp://x/SECRETKEY", "SECRETKEY", "", "https://", "http://10.0.0.1/SECRETKEY", "https://exa mple/SECRETKEY"} {
		e := failureOf(t, slack.Client{}.Webhook(t.Context(), hook, "x"))
		require.Equal(t, slack.Rejected, e.Failure, hook)
	}
}

func TestABotPostsEditsAndAnswersInTheThread(t *testing.T) {
	server := slacktest.New(t)
	c := slack.Client{API: server.API()}
	m, err := c.Post(t.Context(), slacktest.Token, "C1", "", "first")
	require.NoError(t, err)
	require.Equal(t, slack.Message{Channel: "C1", TS: "1700000000.000001"}, m)
	_, err = c.Edit(t.Context(), slacktest.Token, m, "second")
	require.NoError(t, err)
	_, err = c.Post(t.Context(), slacktest.Token, "C1", m.TS, "again")
	require.NoError(t, err)
	require.Equal(t, []slacktest.Message{
		{Hook: "C1", Text: "second", TS: m.TS, Edits: 1}, {Hook: "C1", Text: "again", TS: "1700000000.000002", Thread: m.TS},
	}, server.Messages())
}

func TestTheWebAPIsErrorsAreToldApart(t *testing.T) {
	for name, test := range map[string]struct {
		fault slacktest.Fault
		want  slack.Error
	}{
		"wrong channel":       {slacktest.Fault{Code: "channel_not_found"}, slack.Error{Failure: slack.Rejected, Status: 200, Code: "channel_not_found"}},
		"rate limited":        {slacktest.Fault{Status: 429, RetryAfter: "3"}, slack.Error{Failure: slack.Limited, Status: 429, RetryAfter: 3 * time.Second}},
		"limited in the body": {slacktest.Fault{Code: "ratelimited"}, slack.Error{Failure: slack.Limited, Status: 200, Code: "ratelimited", RetryAfter: 30 * time.Second}},
		"internal":            {slacktest.Fault{Code: "internal_error"}, slack.Error{Failure: slack.Unavailable, Status: 200, Code: "internal_error"}},
		"no answer":           {slacktest.Fault{Swallow: true}, slack.Error{Failure: slack.Unknown, Cause: "timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := slacktest.New(t)
			server.Fail(test.fault)
			_, err := slack.Client{API: server.API(), Timeout: patience}.Post(t.Context(), slacktest.Token, "C1", "", "x")
			require.Equal(t, test.want, *failureOf(t, err))
		})
	}
	server := slacktest.New(t)
	_, err := slack.Client{API: server.API()}.Post(t.Context(), "wrong", "C1", "", "x")
	require.Equal(t, "invalid_auth", failureOf(t, err).Code)
	_, err = slack.Client{API: server.API()}.Edit(t.Context(), slacktest.Token, slack.Message{Channel: "C1", TS: "9"}, "x")
	require.True(t, slack.CodeGone[failureOf(t, err).Code])
}

func TestErrorsReadWell(t *testing.T) {
	require.Equal(t, "slack rejected: status 400: invalid_payload", (&slack.Error{Failure: slack.Rejected, Status: 400, Code: "invalid_payload"}).Error())
	require.Equal(t, "slack unknown: timeout", (&slack.Error{Failure: slack.Unknown, Cause: "timeout"}).Error())
	require.False(t, errors.Is(&slack.Error{}, context.Canceled))
	require.False(t, strings.Contains((&slack.Error{Failure: slack.Unreachable}).Error(), "http"))
}
