package artifact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func runID(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", n) }

func runRequest(v storage.Artifact, n int, role artifact.Role) workflows.RunRequest {
	return workflows.RunRequest{
		VersionRef: workflows.VersionRef{ArtifactID: v.ArtifactID, Version: v.Version}, RunID: runID(n), Role: role, BundleHash: v.BundleHash, WorkflowID: "w",
	}
}

func limits(timeout time.Duration) func(*artifact.Request) {
	return func(r *artifact.Request) {
		r.Spec.Limits = artifact.Limits{Timeout: artifact.Duration(timeout), OutputBytes: 100_000}
	}
}

func TestAScriptRunsAloneAndItsOutputIsKept(t *testing.T) {
	t.Setenv("MILLRACE_SECRET", "must not be seen")
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho hello \"$1\"\nls -A\nenv | cut -d= -f1 | sort | tr '\\n' ' '\necho oops >&2\nexit 3\n", func(r *artifact.Request) {
		r.Spec.Args = json.RawMessage(`{"args":["wor ld"]}`)
	}))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunResult{Status: workflows.RunFailed, ExitCode: 3, Detail: "exit status 3"}, result)
	out := d.read(runID(1), storage.StdoutFile)
	require.Contains(t, out, "hello wor ld\nrun.sh\n", "its directory has the file alone")
	require.NotContains(t, out, "AWS")
	require.NotContains(t, out, "MILLRACE")
	require.NotContains(t, out, "TEMPORAL")
	require.Equal(t, "oops", d.read(runID(1), storage.StderrFile))
	require.Contains(t, d.read(runID(1), storage.OutputFile), `"exit_code":3`)
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.Equal(t, storage.RunFailed, run.Status)
	require.Len(t, run.ContentHashes, 3)

	result, err = d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 2, artifact.Rollback))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	require.Equal(t, "undone", d.read(runID(2), storage.StdoutFile))
}

func TestARunHappensAtMostOnce(t *testing.T) {
	d := newDesk(t)
	mark := filepath.Join(t.TempDir(), "ran")
	v := d.submit(script("#!/bin/sh\necho x >> " + mark + "\n"))
	_, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	_, err = d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	typed(t, err, workflows.ErrConflict)
	body, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(body))
}

// gone waits until a process is dead.
func gone(t *testing.T, pidFile string) {
	t.Helper()
	body, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(body)))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}, 5*time.Second, 20*time.Millisecond, "process %d lives on", pid)
}

func TestAScriptThatNeverEndsIsKilledWithItsChildren(t *testing.T) {
	d := newDesk(t)
	pid := filepath.Join(t.TempDir(), "pid")
	v := d.submit(script("#!/bin/sh\ntrap '' TERM\nsleep 300 &\necho $! > "+pid+"\nwhile :; do sleep 1; done\n", limits(time.Second)))
	began := time.Now()
	result, err := d.executor(Scripts{Grace: 200 * time.Millisecond}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunTimedOut, result.Status)
	require.Less(t, time.Since(began), 20*time.Second)
	gone(t, pid)
}

func TestAChildThatOutlivesItsScriptIsKilled(t *testing.T) {
	d := newDesk(t)
	pid := filepath.Join(t.TempDir(), "pid")
	v := d.submit(script("#!/bin/sh\nsleep 300 &\necho $! > "+pid+"\nexit 0\n", limits(time.Minute)))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	gone(t, pid)
}

func TestEndlessOutputIsCut(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\nhead -c 50000000 /dev/zero | tr '\\0' x\n", limits(time.Minute)))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	require.Len(t, d.read(runID(1), storage.StdoutFile), 100_000)
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.True(t, run.Truncated)
}

func TestMemoryIsLimited(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\nx=$(head -c 200000000 /dev/zero | tr '\\0' x)\necho ${#x}\n", func(r *artifact.Request) {
		r.Spec.Limits = artifact.Limits{MemoryBytes: 32 << 20, Timeout: artifact.Duration(time.Minute)}
	}))
	result, err := d.executor(Scripts{}).Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunFailed, result.Status)
}

func TestACancelledOrPartitionedRunIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		beat error
		want string
	}{
		"cancelled": {ErrCancelled, workflows.RunCancelled},
		"silent":    {errors.New("no route to the server"), workflows.RunWorkerLost},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			pid := filepath.Join(t.TempDir(), "pid")
			v := d.submit(script("#!/bin/sh\necho $$ > " + pid + "\nexec sleep 300\n"))
			e := d.executor(Scripts{Grace: 100 * time.Millisecond})
			e.Every = 500 * time.Millisecond
			e.Heartbeat = func(context.Context) error { return c.beat }
			if name == "silent" {
				e.Every = workflows.RunHeartbeat * 2 / 3 // one beat is all that is needed
			}
			if name == "silent" && testing.Short() {
				e.Every = time.Second
			}
			began := time.Now()
			result, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
			require.NoError(t, err)
			require.Equal(t, c.want, result.Status)
			require.Less(t, time.Since(began), workflows.RunHeartbeat, "before the server may give it up")
			gone(t, pid)
		})
	}
}

func TestChangedContentAndOtherBundlesNeverRun(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho good\n"))
	other := runRequest(v, 1, artifact.Primary)
	other.BundleHash = artifact.HashOf(nil)
	_, err := d.executor(Scripts{}).Execute(t.Context(), other)
	typed(t, err, workflows.ErrForbidden)

	v.Files[0].ContentHash = artifact.HashOf([]byte("evil"))
	_, err = d.executor(Scripts{}).fetch(t.Context(), v, artifact.Primary, t.TempDir())
	require.True(t, storage.IsIntegrity(err))
	_, err = d.executor(Scripts{}).fetch(t.Context(), storage.Artifact{}, artifact.Primary, t.TempDir())
	require.ErrorIs(t, err, errForbidden)
	runs, err := d.Store.Runs(t.Context(), "fix", 1)
	require.NoError(t, err)
	require.Empty(t, runs)
}

func requestOf(url, rollback string) artifact.Request {
	return script("the body", func(r *artifact.Request) {
		args, _ := json.Marshal(artifact.HTTPArgs{Method: "POST", URL: url, RollbackURL: rollback, ContentType: "text/plain"})
		r.Spec.Kind, r.Spec.Args = artifact.HTTP, args
	})
}

func TestARequestCarriesItsRunAsIdempotencyKey(t *testing.T) {
	var got *http.Request
	status := http.StatusCreated
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		fmt.Fprint(w, "done")
	}))
	defer server.Close()
	host, err := url.Parse(server.URL)
	require.NoError(t, err)
	d := newDesk(t)
	v := d.submit(requestOf(server.URL+"/do", server.URL+"/undo"))
	e := d.executor(Requests{Hosts: []string{host.Hostname()}, AllowPrivate: true})
	result, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunSucceeded, result.Status)
	require.Equal(t, runID(1), got.Header.Get("Idempotency-Key"))
	require.Equal(t, "/do", got.URL.Path)
	require.Equal(t, "done", d.read(runID(1), storage.StdoutFile))

	for n, code := range map[int]int{2: http.StatusInternalServerError, 3: http.StatusFound} {
		status = code
		result, err = e.Execute(t.Context(), runRequest(v, n, artifact.Rollback))
		require.NoError(t, err)
		require.Equal(t, workflows.RunFailed, result.Status)
		require.Equal(t, code, result.ExitCode, "redirects are not followed")
		require.Equal(t, "/undo", got.URL.Path)
	}
}

func TestRequestsMayNotGoInside(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request got through") }))
	defer server.Close()
	host, err := url.Parse(server.URL)
	require.NoError(t, err)
	d := newDesk(t)
	v := d.submit(requestOf(server.URL, ""))
	for n, r := range []Requests{{}, {Hosts: []string{"example.org"}}, {Hosts: []string{host.Hostname()}}} {
		result, err := d.executor(r).Execute(t.Context(), runRequest(v, n+1, artifact.Primary))
		require.NoError(t, err)
		require.Equal(t, workflows.RunFailed, result.Status)
		require.Contains(t, result.Detail, errForbidden.Error())
	}
	for _, address := range []string{"127.0.0.1:80", "10.0.0.1:80", "169.254.169.254:80", "192.168.0.1:80", "[::1]:80", "[fe80::1]:80", "[fd00::1]:80", "0.0.0.0:80", "[::ffff:127.0.0.1]:80", "100.64.0.1:80", "224.0.0.1:80", "nonsense"} {
		require.Error(t, Requests{}.control("tcp", address, nil), address)
	}
	require.NoError(t, Requests{}.control("tcp", "93.184.216.34:443", nil))
}
