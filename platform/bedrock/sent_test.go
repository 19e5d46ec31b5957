package bedrock

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestErrorsSayWhetherTheRequestMayHaveToBePaidFor(t *testing.T) {
	said := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", code)
			w.WriteHeader(status)
		}
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		sent  bool
	}{
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200")
			_, _ = w.Write([]byte(`{"output":`))
		}, true},
		"broken off":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"slow":          {func(http.ResponseWriter, *http.Request) { time.Sleep(300 * time.Millisecond) }, true},
		"model timeout": {said(408, "ModelTimeoutException"), true},
		"throttled":     {said(429, "ThrottlingException"), false},
		"unavailable":   {said(503, "ServiceUnavailableException"), false},
		"denied":        {said(403, "AccessDeniedException"), false},
	} {
		model, _ := service(t, c.serve)
		model.Timeout = 200 * time.Millisecond
		_, err := model.Ask(t.Context(), request())
		failed, ok := errors.AsType[*Error](err)
		require.True(t, ok, name)
		require.Equal(t, c.sent, failed.Sent, "%s: %v", name, err)
	}
}
