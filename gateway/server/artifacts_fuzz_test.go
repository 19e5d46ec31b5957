package server_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzUpload has whatever a client sends be taken or refused, never break the
// server, and leave no file behind.
func FuzzUpload(f *testing.F) {
	const contentType = "multipart/form-data; boundary=b"
	form := func(request, name, content string) []byte {
		return []byte("--b\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n" + request +
			"\r\n--b\r\nContent-Disposition: form-data; name=\"primary\"; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n--b--\r\n")
	}
	f.Add(contentType, form(document(), "fix.sh", "fix"))
	f.Add(contentType, form(document(version(1)), "../fix.sh", "fix"))
	f.Add(contentType, form("{", "fix.sh", "")[:90])
	f.Add("multipart/form-data; boundary=\"", form("{}", "fix.sh", "fix"))
	f.Add("application/json", []byte(document()))
	f.Add("application/json", []byte(`{"artifact_id":"a","files":[{"role":"primary","filename":"x","content_base64":"eA=="}]}`))
	d := newArtifactDesk(f)
	token := d.token(kim)
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/v1/artifacts", bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header["Content-Type"] = []string{contentType}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return // the client itself refuses to send such a header
		}
		require.NoError(t, response.Body.Close())
		require.Contains(t, []int{202, 400, 409, 415, 429}, response.StatusCode)
		left, err := os.ReadDir(d.folder)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
