package artifact

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/artifact"
	"millrace/domain/exact"
	"millrace/domain/factory"
	storage "millrace/storage/artifact"
	workflows "millrace/workflows/artifact"
)

const lockLease = artifact.Duration(time.Hour)

func TestLocksAreTakenInOrderAndGivenFree(t *testing.T) {
	d := newDesk(t)
	ask := func(owner string, ids ...string) workflows.LockResult {
		got, err := d.Lock(t.Context(), workflows.LockRequest{FactoryIDs: ids, Owner: owner, Lease: lockLease})
		require.NoError(t, err)
		return got
	}
	require.Empty(t, ask("artifact/one/v1", "plant-2"))
	blocked := ask("artifact/two/v1", "plant-3", "plant-1", "plant-2")
	require.Equal(t, "plant-2", blocked.FactoryID)
	require.Equal(t, "artifact/one/v1", blocked.Owner)
	require.Equal(t, d.now.Add(time.Hour), blocked.Until)
	require.Empty(t, ask("artifact/three/v1", "plant-3"), "what comes after the blocked one is not taken")
	require.Equal(t, "plant-1", ask("artifact/three/v1", "plant-1").FactoryID, "what comes before stays held")

	require.NoError(t, d.Unlock(t.Context(), workflows.UnlockRequest{FactoryIDs: []string{"plant-1", "plant-2", "plant-9"}, Owner: "artifact/one/v1"}))
	require.Empty(t, ask("artifact/two/v1", "plant-2"))
	require.Equal(t, "plant-1", ask("artifact/three/v1", "plant-1").FactoryID, "the lock of another stays")
	d.now = d.now.Add(time.Hour)
	require.Empty(t, ask("artifact/three/v1", "plant-1"), "its time is over")
}

// states are the current states of factories.
type states map[string]factory.Latest

func (s states) BatchLatest(_ context.Context, ids []string) (map[string]factory.Latest, error) {
	if len(ids) == 0 {
		return nil, errors.New("asked for nothing")
	}
	return s, nil
}

func TestHealthIsThatOfLatestInTheOrderAsked(t *testing.T) {
	at := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	a := Activities{Factories: states{
		"plant-1": {
			Risk: &factory.Risk{Score: exact.MustParse("84.5")}, FactoryState: &factory.FactoryState{SourceTimestamp: at},
			InfraState: &factory.InfraState{SourceTimestamp: at.Add(time.Second)},
		},
		"plant-3": {InfraState: &factory.InfraState{SourceTimestamp: at}},
	}}
	got, err := a.Health(t.Context(), workflows.HealthRequest{FactoryIDs: []string{"plant-3", "plant-2", "plant-1"}})
	require.NoError(t, err)
	require.Equal(t, []artifact.Health{
		{InfraAt: at},
		{},
		{Score: new(exact.MustParse("84.5")), FactoryAt: at, InfraAt: at.Add(time.Second)},
	}, got.Factories)
	_, err = a.Health(t.Context(), workflows.HealthRequest{})
	require.Error(t, err)
}

func TestContentThatIsTooLargeForAJobIsRefused(t *testing.T) {
	d := newDesk(t)
	job := func(size int) artifact.Request {
		return script("", func(r *artifact.Request) {
			r.Spec.Kind, r.Spec.Args = artifact.IoTJob, []byte(`{"targets":["plant-1"],"waves":[1]}`)
			body := strings.Repeat("#", size)
			stored, err := d.Store.Put(t.Context(), "artifacts/fix/v1/run.sh", "text/plain", strings.NewReader(body))
			require.NoError(t, err)
			r.Files[0] = artifact.File{Role: artifact.Primary, Filename: "run.sh", ContentHash: stored.ContentHash, S3VersionID: stored.S3VersionID}
			r.Files[1].ContentBase64 = base64.StdEncoding.EncodeToString([]byte("undo"))
		})
	}
	_, err := d.Prepare(t.Context(), job(artifact.MaxJobContent+1))
	typed(t, err, workflows.ErrInvalid)
	require.ErrorContains(t, err, "must be at most 64 KiB each: run.sh has 65537 bytes")
	v := d.submit(job(artifact.MaxJobContent))
	require.JSONEq(t, `{"targets":["plant-1"],"waves":[1],"pause":"0s","gate":{"min_score":50,"max_drop":10,"within":"10m0s"}}`, string(v.Spec.Args))
}

func TestAJobStandsAsItsItemTells(t *testing.T) {
	d := newDesk(t)
	const run = "01890a5d-ac96-7abc-8abc-0123456789ab"
	ref := workflows.RunRef{VersionRef: workflows.VersionRef{ArtifactID: "fix", Version: 1}, RunID: run}
	read := func(r workflows.RunRef) workflows.RunEnd {
		end, err := d.ReadRun(t.Context(), r)
		require.NoError(t, err)
		return end
	}
	require.Zero(t, read(ref), "it has not begun")
	began, err := d.Store.Begin(t.Context(), "fix", 1, storage.Run{RunID: run, Status: storage.Running, StartedAt: d.now})
	require.NoError(t, err)
	require.True(t, began)
	require.Zero(t, read(ref), "it runs")
	finished := d.now.AddDate(-5, 0, 0)
	require.NoError(t, d.Store.Finish(t.Context(), "fix", storage.Run{RunID: run, Status: storage.RunFailed, ExitCode: 3, Detail: "no", FinishedAt: &finished}))
	require.Equal(t, workflows.RunEnd{
		Ended: true, Result: workflows.RunResult{Status: workflows.RunFailed, ExitCode: 3, Detail: "no"}, FinishedAt: d.now.Add(-5 * time.Minute),
	}, read(ref))
	ref.Version = 2
	require.Zero(t, read(ref), "it is another version's")
}
