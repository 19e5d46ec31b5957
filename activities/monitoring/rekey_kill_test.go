package monitoring_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/monitoring"
	"millrace/domain/monitoring"
	store "millrace/storage/monitoring"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/monitoring"
	"millrace/workflows/names"
)

// childTable is the variable that makes this test program a worker on the table
// that it names.
const childTable, childQueue = "MILLRACE_TEST_REKEY_TABLE", "MILLRACE_TEST_REKEY_QUEUE"

func TestMain(m *testing.M) {
	if name := os.Getenv(childTable); name != "" {
		runChild(name)
	}
	os.Exit(m.Run())
}

// slow is a store that takes its time, so that a test can kill in between.
type slow struct{ store.Store }

func (s slow) SaveRecovery(ctx context.Context, grant monitoring.Grant, envelope *monitoring.Envelope) error {
	time.Sleep(50 * time.Millisecond)
	return s.Store.SaveRecovery(ctx, grant, envelope)
}

// runChild works until the process is killed.
func runChild(tableName string) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	ring, err := store.LoadKeyRing("")
	must(err)
	cfg, err := config.LoadDefaultConfig(context.Background())
	must(err)
	options, err := envconfig.LoadDefaultClientOptions()
	must(err)
	c, err := client.Dial(options)
	must(err)
	w := worker.New(c, os.Getenv(childQueue), worker.Options{})
	w.RegisterWorkflowWithOptions(workflows.RekeyTokens, workflow.RegisterOptions{Name: names.RekeyTokens})
	rekeyer := activities.Rekeyer{Store: slow{store.New(dynamodb.NewFromConfig(cfg), tableName)}, Ring: ring}
	w.RegisterActivityWithOptions(rekeyer.RekeyBatch, activity.RegisterOptions{Name: workflows.RekeyBatchActivity})
	must(w.Run(nil))
}

func TestRekeyGoesOnAfterItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	c := dial(t)
	s := store.Store{Table: storagetest.Table(t, storagetest.Monitoring)}
	before, after := rings(t)
	create(t, s, before, 150)
	queue := "test-rekey-kill-" + s.Table.Name
	ring, err := monitoring.MarshalKeyRing(after)
	require.NoError(t, err)
	child := exec.Command(os.Args[0]) //nolint:gosec // this test program itself
	child.Env = append(os.Environ(), childTable+"="+s.Table.Name, childQueue+"="+queue, store.KeyRingVariable+"="+string(ring))
	require.NoError(t, child.Start())
	killed := false
	t.Cleanup(func() {
		if !killed {
			_ = child.Process.Kill()
			_ = child.Wait()
		}
	})

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: names.RekeyTokensID("k1") + s.Table.Name, TaskQueue: queue},
		names.RekeyTokens, workflows.RekeyInput{KeyID: "k1"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		moved, _, err := s.TokensUnderKey(t.Context(), "k2", "", 100)
		return err == nil && len(moved) >= 20
	}, 60*time.Second, 20*time.Millisecond)
	require.NoError(t, child.Process.Kill())
	killed = true
	require.ErrorContains(t, child.Wait(), "killed")

	second := work(t, c, queue, activities.Rekeyer{Store: s, Ring: after})
	defer second.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var report workflows.RekeyReport
	require.NoError(t, run.Get(ctx, &report))
	require.True(t, report.Clean)
	require.LessOrEqual(t, report.Counts.Sealed, int64(150))
	requireAllUnder(t, s, after, 150)
	require.False(t, strings.Contains(report.CurrentKeyID, "k1"))
}
