package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/monitoring"
	"millrace/gateway/server"
	"millrace/platform/temporalconf"
)

func TestCodecServerShowsWhatIsEncrypted(t *testing.T) {
	codec := temporalconf.Codec{Ring: newRing(t, "k1")}
	f := newFixture(t, server.Codec(codec))
	_, admin := f.issue("user:kim", monitoring.ScopeAdmin)
	_, reader := f.issue("user:lee", monitoring.ScopeRead)
	plain := fmt.Sprintf(`{"payloads":[{"metadata":{"encoding":%q},"data":%q}]}`,
		base64.StdEncoding.EncodeToString([]byte("json/plain")), base64.StdEncoding.EncodeToString([]byte(`"stuck"`)))

	encoded := f.call(http.MethodPost, "/v1/codec/encode", admin, plain)
	require.Equal(t, http.StatusOK, encoded.Status)
	sealed := string(encoded.Body)
	require.NotContains(t, sealed, base64.StdEncoding.EncodeToString([]byte(`"stuck"`)))

	decoded := f.call(http.MethodPost, "/v1/codec/decode", admin, sealed)
	require.Equal(t, http.StatusOK, decoded.Status)
	require.JSONEq(t, plain, string(decoded.Body))

	none := f.call(http.MethodPost, "/v1/codec/encode", admin, `{}`) // a query without arguments
	require.Equal(t, http.StatusOK, none.Status)
	require.JSONEq(t, `{}`, string(none.Body))

	require.Equal(t, http.StatusForbidden, f.call(http.MethodPost, "/v1/codec/decode", reader, sealed).Status)
	require.Equal(t, http.StatusBadRequest, f.call(http.MethodPost, "/v1/codec/decode", admin, `{"payloads":1}`).Status)
	other := newFixture(t, server.Codec(temporalconf.Codec{Ring: newRing(t, "k2")}))
	_, admin = other.issue("user:kim", monitoring.ScopeAdmin)
	answer := other.call(http.MethodPost, "/v1/codec/decode", admin, sealed)
	require.Equal(t, http.StatusBadRequest, answer.Status)
	require.Contains(t, string(answer.Body), "key")
}
