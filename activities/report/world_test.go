package report

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/factory"
	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/report"
)

const (
	seoul   = "Asia/Seoul"
	newYear = "2026-01-01"
)

var (
	silent = slog.New(slog.DiscardHandler)
	// dayStart is when 1 January 2026 begins in Seoul.
	dayStart = time.Date(2025, 12, 31, 15, 0, 0, 0, time.UTC)
)

// plant is a bucket of its own with what makes reports of it.
type plant struct {
	Aggregator
	t     testing.TB
	calls *storagetest.Calls
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	bucket, calls := storagetest.Bucket(t), &storagetest.Calls{}
	bucket.Client = s3.NewFromConfig(calls.Watch(storagetest.Config(t)), func(o *s3.Options) { o.UsePathStyle = true })
	return &plant{t: t, calls: calls, Aggregator: Aggregator{
		Store: storage.Store{Bucket: bucket, Prefix: "reports/daily"}, Settings: report.DefaultSettings(), Now: time.Now, Logger: silent,
	}}
}

// writers is how many objects a test stores side by side.
const writers = 16

// telemetry stores what a calm factory leaves behind between two offsets from the
// start of the day.
func (p *plant) telemetry(factoryID string, from, to time.Duration) int {
	p.t.Helper()
	day := reporttest.FactoryDay{FactoryID: factoryID, Start: dayStart.Add(from), End: dayStart.Add(to), Calm: true}
	written, err := reporttest.Write(p.t.Context(), p.Store.Bucket, day.Objects(), writers)
	require.NoError(p.t, err)
	return written
}

// snapshots stores a state_snapshot a minute between two offsets.
func (p *plant) snapshots(factoryID string, from, to time.Duration) {
	p.t.Helper()
	for at := dayStart.Add(from); at.Before(dayStart.Add(to)); at = at.Add(time.Minute) {
		updated := factory.MillisOf(at.Add(123 * time.Millisecond))
		body := fmt.Appendf(nil, `{"pk":"FACTORY#%[1]s","sk":"HISTORY#STATE#%[2]s","factory_id":%[1]q,"updated_at":%[2]q,"risk":{"score":%[3]d,"level":"safe"}}`,
			factoryID, updated, 90+at.Minute()%10)
		require.NoError(p.t, p.Store.Bucket.Put(p.t.Context(), factory.SnapshotKey(factoryID, updated), objects.JSON, body))
	}
}

// run runs an activity as a worker does.
func run[Q, R any](t testing.TB, activity func(context.Context, Q) (R, error), req Q) (R, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(silent))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.RegisterActivity(activity)
	var result R
	value, err := env.ExecuteActivity(activity, req)
	if err != nil {
		return result, err
	}
	require.NoError(t, value.Get(&result))
	return result, nil
}

func (p *plant) hour(target, hour string) workflows.HourResult {
	p.t.Helper()
	result, err := run(p.t, p.SummariseHour, workflows.HourRequest{Target: target, Date: newYear, Timezone: seoul, Hour: hour})
	require.NoError(p.t, err)
	return result
}

func (p *plant) bytes(key string) string {
	p.t.Helper()
	body, err := p.Store.Bucket.Get(p.t.Context(), key, 8<<20)
	require.NoError(p.t, err)
	return string(body)
}

func (p *plant) summary(key string) report.FactoryHourSummary {
	p.t.Helper()
	var summary report.FactoryHourSummary
	require.NoError(p.t, p.Store.ReadJSON(p.t.Context(), key, &summary))
	return summary
}

// flaky is an S3 client that refuses or loses chosen reads.
type flaky struct {
	objects.API
	mu   sync.Mutex
	fail func(key string, nth int) error
	seen map[string]int
}

func (f *flaky) GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	f.mu.Lock()
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[*in.Key]++
	err := f.fail(*in.Key, f.seen[*in.Key])
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.API.GetObject(ctx, in, options...)
}
