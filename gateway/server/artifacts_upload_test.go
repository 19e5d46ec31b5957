package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
)

// zeros is a body of so many bytes that nobody holds in memory.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

// stream is a form that is made while it is sent.
func stream(sizes map[string]int64, order ...string) (io.Reader, string) {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		part, err := form.CreateFormField("request")
		if err == nil {
			_, err = io.WriteString(part, document(version(1)))
		}
		for _, name := range order {
			if err == nil {
				part, err = form.CreateFormFile(name, name+".bin")
			}
			if err == nil {
				_, err = io.Copy(part, &zeros{left: sizes[name]})
			}
		}
		if err == nil {
			err = form.Close()
		}
		_ = w.CloseWithError(err) // its reader sees it
	}()
	return r, form.FormDataContentType()
}

// peak watches how much more memory is in use at most until its result is called.
func peak() func() int64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-ended
		return int64(most.Load()) - int64(before.HeapInuse)
	}
}

// TestAnUploadOf100MiBTakesLittleMemory measures gateway, client and S3's own
// stand-in apart from each other: the last runs in another process.
func TestAnUploadOf100MiBTakesLittleMemory(t *testing.T) {
	d := newArtifactDesk(t)
	d.token(kim)
	most := peak()
	body, contentType := stream(map[string]int64{"primary": 99 << 20, "rollback": 1 << 20}, "primary", "rollback")
	a := d.upload(http.MethodPost, "/v1/artifacts", body, contentType)
	used := most()
	require.Equal(t, http.StatusAccepted, a.Status, string(a.Body))
	t.Logf("100 MiB took %.1f MiB of heap", float64(used)/(1<<20))
	require.Less(t, used, int64(16<<20))

	files := d.request("artifact/fix/v1").Files
	require.EqualValues(t, 99<<20, files[0].Size)
	stored, err := d.store.Stat(t.Context(), "artifacts/fix/v1/primary.bin", "")
	require.NoError(t, err)
	require.Equal(t, files[0].ContentHash, stored.ContentHash)
	require.EqualValues(t, 99<<20, stored.Size)
	d.requireNoFiles()

	d.create("artifact/fix/v1", artifact.InReview)
	most = peak()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/artifacts/fix/versions/1/content", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+d.token(kim))
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.EqualValues(t, 99<<20, size)
	used = most()
	t.Logf("99 MiB down took %.1f MiB of heap", float64(used)/(1<<20))
	require.Less(t, used, int64(16<<20))
}

func TestMoreThan100MiBIsRefusedAndLeavesNothing(t *testing.T) {
	d := newArtifactDesk(t)
	body, contentType := stream(map[string]int64{"primary": 99 << 20, "rollback": 1<<20 + 1}, "primary", "rollback")
	p := d.upload(http.MethodPost, "/v1/artifacts", body, contentType).problem(http.StatusRequestEntityTooLarge, "body-too-large")
	require.Contains(t, p.Detail, "104857600")
	d.requireNothingLeft()

	for name, length := range map[string]int{"multipart/form-data; boundary=x": 102 << 20, "application/json": 16<<20 + 1} {
		answer := d.raw(fmt.Sprintf("POST /v1/artifacts HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n", name, length), "")
		require.Contains(t, answer, "413", "refused by its length alone")
	}
	chunked := struct{ io.Reader }{io.LimitReader(&zeros{left: 17 << 20}, 17<<20)}
	d.upload(http.MethodPost, "/v1/artifacts", chunked, "application/json").problem(http.StatusRequestEntityTooLarge, "body-too-large")
	d.requireNothingLeft()
}

// raw sends bytes and gives the first line of the answer, "" for none.
func (d *artifactDesk) raw(header, body string) string {
	d.Helper()
	return d.rawAs(kim, header, body)
}

func (d *artifactDesk) rawAs(owner, header, body string) string {
	d.Helper()
	connection, err := (&net.Dialer{}).DialContext(d.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	require.NoError(d, err)
	defer connection.Close()
	_, err = io.WriteString(connection, header+"Authorization: Bearer "+d.token(owner)+"\r\n\r\n"+body)
	require.NoError(d, err)
	require.NoError(d, connection.SetReadDeadline(time.Now().Add(10*time.Second)))
	line, _ := bufio.NewReader(connection).ReadString('\n')
	return line
}

func TestAClientThatStopsSendingIsCutOffAndLeavesNothing(t *testing.T) {
	d := newArtifactDesk(t)
	body, contentType := parts(t, piece{"request", "", document()}, piece{"primary", "fix.sh", strings.Repeat("x", 100_000)})
	header := fmt.Sprintf("POST /v1/artifacts HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n", contentType, body.Len())
	require.Contains(t, d.raw(header, body.String()[:50_000]), "408")
	d.requireNothingLeft()
	require.Contains(t, d.raw(header, ""), "408")
	d.requireNothingLeft()
}

func TestAClientThatHangsUpLeavesNothing(t *testing.T) {
	d := newArtifactDesk(t)
	body, contentType := parts(t, piece{"request", "", document()}, piece{"primary", "fix.sh", strings.Repeat("x", 100_000)})
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(d.url, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprintf(connection, "POST /v1/artifacts HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\nAuthorization: Bearer %s\r\n\r\n%s",
		contentType, body.Len(), d.token(kim), body.String()[:90_000])
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	// Another upload is served meanwhile, and the broken one never begins.
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status)
	require.Eventually(t, func() bool { return d.uploading() == 0 }, 5*time.Second, 20*time.Millisecond)
	require.Len(t, d.started, 1)
	require.Len(t, d.objects(), 1)
	d.requireNoFiles()
}

// uploading is how many places for uploads are taken, as seen from outside: so
// many fewer hanging uploads fit in.
func (d *artifactDesk) uploading() int {
	d.Helper()
	answers := d.hang(8)
	refused := 0
	for _, line := range answers {
		if strings.Contains(line, "503") {
			refused++
		}
	}
	return refused
}

// hang begins uploads at once that never send a body, and gives their answers.
func (d *artifactDesk) hang(n int) []string {
	d.Helper()
	owners := []string{kim, "user:hanging"}
	for _, owner := range owners {
		d.token(owner)
	}
	answers := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			answers[i] = d.rawAs(owners[i%len(owners)], "POST /v1/artifacts HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 10\r\n", "")
		})
	}
	all.Wait()
	return answers
}

func TestNoMoreUploadsThanPlacesAreTaken(t *testing.T) {
	d := newArtifactDesk(t)
	counts := map[string]int{}
	for _, line := range d.hang(12) {
		counts[strings.Fields(line)[1]]++
	}
	require.Equal(t, map[string]int{"408": 8, "503": 4}, counts)
	require.Equal(t, http.StatusAccepted, d.send(kim, http.MethodPost, "/v1/artifacts", submission()).Status, "the places are free again")
}

func BenchmarkUpload(b *testing.B) {
	b.SetBytes(10 << 20)
	content := bytes.Repeat([]byte("x"), 10<<20)
	d := newArtifactDesk(b)
	for n := 0; b.Loop(); n++ {
		body, contentType := parts(b, piece{"request", "", document(version(n%9999 + 1))}, piece{"primary", "fix.bin", string(content)})
		a := d.upload(http.MethodPost, "/v1/artifacts", body, contentType)
		require.Equal(b, http.StatusAccepted, a.Status)
	}
}
