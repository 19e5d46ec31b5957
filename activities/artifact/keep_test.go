package artifact

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	storage "millrace/storage/artifact"
	"millrace/storage/table"
	workflows "millrace/workflows/artifact"
)

var errAway = errors.New("connection refused")

// outage is a store that does not answer for so many requests that write what a
// run left, and then answers again.
type outage struct {
	storage.Bucket
	left atomic.Int64
	// during is called at each request that is not answered.
	during func()
}

func (o *outage) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if strings.HasPrefix(*in.Key, "executions/") && o.left.Add(-1) >= 0 {
		if o.during != nil {
			o.during()
		}
		return nil, errAway
	}
	return o.Bucket.PutObject(ctx, in, options...)
}

// deafTable does not answer so many updates.
type deafTable struct {
	table.API
	left atomic.Int64
	// late has the update made all the same.
	late bool
}

func (o *deafTable) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if o.left.Add(-1) < 0 {
		return o.API.UpdateItem(ctx, in, options...)
	}
	if o.late {
		_, _ = o.API.UpdateItem(ctx, in, options...)
	}
	return nil, errAway
}

// TestAnOutageAsAScriptEndsMakesItNoLostRun has the stores away when the run is
// over.
func TestAnOutageAsAScriptEndsMakesItNoLostRun(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho done\n"))
	var beats atomic.Int64
	e := d.executor(Scripts{})
	e.Heartbeat = func(context.Context) error { beats.Add(1); return ErrCancelled }
	away := &outage{Bucket: d.Store.Client}
	away.left.Store(3)
	away.during = func() {
		run, err := d.Store.Run(t.Context(), "fix", runID(1))
		require.NoError(t, err)
		require.Equal(t, storage.Succeeded, run.Status, "how it ended is known before what it left is stored")
	}
	deaf := &deafTable{API: d.Store.Table.Client, late: true}
	deaf.left.Store(2)
	e.Store.Client, e.Store.Table.Client = away, deaf
	e.Every = time.Hour // but those of the end
	result, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	require.Equal(t, workflows.RunResult{Status: workflows.RunSucceeded}, result)
	require.Equal(t, "done", d.read(runID(1), storage.StdoutFile))
	require.Positive(t, beats.Load(), "the server is shown that somebody is at it")
}

func TestHeartbeatsGoOnWhileOutputIsStored(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho done\n"))
	var beats atomic.Int64
	e := d.executor(Scripts{})
	e.Heartbeat = func(context.Context) error { beats.Add(1); return nil }
	away := &outage{Bucket: d.Store.Client, during: func() {
		seen := beats.Load()
		require.Eventually(t, func() bool { return beats.Load() > seen+2 }, 5*time.Second, time.Millisecond)
	}}
	away.left.Store(2)
	e.Store.Client = away
	_, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
}

// TestARunThatEndedIsSettledAsItEnded has its worker die before its output was
// stored.
func TestARunThatEndedIsSettledAsItEnded(t *testing.T) {
	d := newDesk(t)
	v := d.submit(script("#!/bin/sh\necho done\n"))
	var settled workflows.SettleResult
	e := d.executor(Scripts{})
	away := &outage{Bucket: d.Store.Client, during: func() {
		var err error
		settled, err = d.SettleRun(t.Context(), workflows.SettleRequest{
			VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: runID(1), Status: workflows.RunWorkerLost, Detail: "no sign of life",
		})
		require.NoError(t, err)
	}}
	away.left.Store(1)
	e.Store.Client = away
	result, err := e.Execute(t.Context(), runRequest(v, 1, artifact.Primary))
	require.NoError(t, err)
	want := workflows.RunResult{Status: workflows.RunSucceeded, Detail: noOutput}
	require.Equal(t, workflows.SettleResult{Began: true, Result: want}, settled)
	require.Equal(t, want, result)
	run, err := d.Store.Run(t.Context(), "fix", runID(1))
	require.NoError(t, err)
	require.Equal(t, storage.Succeeded, run.Status)
	require.Empty(t, run.ContentHashes, "what was settled does not change any more")
	again, err := d.SettleRun(t.Context(), workflows.SettleRequest{
		VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: runID(1), Status: workflows.RunWorkerLost, Detail: "no sign of life",
	})
	require.NoError(t, err)
	require.Equal(t, settled, again)
}
