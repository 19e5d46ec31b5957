package e2e

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"golang.org/x/sync/errgroup"

	activities "millrace/activities/report"
	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	"millrace/platform/awsconf"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/report"
)

// hoursAtOnce is how many hours of a target a report aggregates side by side.
const hoursAtOnce = 6

// BenchmarkReportDay aggregates a whole day through the activities, from objects
// in the bucket to the day's summary and context: about 62,000 objects of a
// factory, and the snapshots of the infrastructure.
func BenchmarkReportDay(b *testing.B) {
	day, err := report.ParseDay("2026-01-01", "Asia/Seoul")
	require.NoError(b, err)
	window := day.Window()
	for _, target := range []struct {
		id      string
		objects iter.Seq[reporttest.Object]
	}{
		{"factory-a", reporttest.FactoryDay{FactoryID: "factory-a", Start: window.Start, End: window.End}.Objects()},
		{report.CloudTarget, reporttest.CloudDay{Start: window.Start, End: window.End}.Objects()},
	} {
		b.Run("target="+target.id, func(b *testing.B) {
			r := newReportDay(b, day, target.id)
			begin := time.Now()
			written, err := reporttest.Write(b.Context(), r.bucket, target.objects, 32)
			require.NoError(b, err)
			b.Logf("wrote %d objects in %s", written, time.Since(begin).Round(time.Second))
			b.Cleanup(r.empty)
			for b.Loop() {
				r.measure(written)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// reportDay is a day of one target in a bucket of its own.
type reportDay struct {
	b          *testing.B
	day        report.Day
	target     string
	bucket     objects.Bucket
	calls      storagetest.Calls
	aggregator activities.Aggregator
}

func newReportDay(b *testing.B, day report.Day, target string) *reportDay {
	r := &reportDay{b: b, day: day, target: target, bucket: storagetest.Bucket(b)}
	settings := report.DefaultSettings()
	counted := r.bucket
	counted.Client = r.client(hoursAtOnce * settings.GetConcurrency)
	r.aggregator = activities.Aggregator{
		Store: storage.Store{Bucket: counted, Prefix: settings.OutputPrefix}, Settings: settings,
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	return r
}

// client is counted and keeps as many connections as are used at once, as a
// worker's does.
func (r *reportDay) client(connections int) *s3.Client {
	cfg := r.calls.Watch(storagetest.Config(r.b))
	cfg.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	})
	return awsconf.NewS3(cfg)
}

// measure aggregates the day once and reports what it took.
func (r *reportDay) measure(written int) {
	debug.FreeOSMemory()
	forgetPeak(r.b)
	r.calls.Take()
	begin, cpu := time.Now(), cpuSeconds(r.b)
	records := r.hours()
	result, err := act[workflows.DayResult](r.aggregator.MergeDay, workflows.DayRequest{Target: r.target, Date: r.day.Date(), Timezone: r.day.Timezone()})
	took, used := time.Since(begin), cpuSeconds(r.b)-cpu
	require.NoError(r.b, err)
	calls := r.calls.Take()
	r.check(result, records)
	r.b.ReportMetric(float64(written)/took.Seconds(), "objects/s")
	r.b.ReportMetric(took.Seconds(), "s/day")
	r.b.ReportMetric(used, "cpu-s/day")
	r.b.ReportMetric(peakMB(r.b), "peak-MB")
	r.b.ReportMetric(float64(calls["GetObject"]), "GETs")
	r.b.ReportMetric(float64(calls["ListObjectsV2"]), "LISTs")
	r.b.ReportMetric(float64(calls["PutObject"]), "PUTs")
}

// hours aggregates all hours and returns how many records they counted.
func (r *reportDay) hours() int {
	hours := r.day.Hours()
	results := make([]workflows.HourResult, len(hours))
	var group errgroup.Group
	group.SetLimit(hoursAtOnce)
	for i, hour := range hours {
		group.Go(func() (err error) {
			results[i], err = act[workflows.HourResult](r.aggregator.SummariseHour, workflows.HourRequest{
				Target: r.target, Date: r.day.Date(), Timezone: r.day.Timezone(), Hour: hour.Label,
			})
			return err
		})
	}
	require.NoError(r.b, group.Wait())
	records := 0
	for _, result := range results {
		for _, n := range result.InputCounts {
			records += n
		}
	}
	return records
}

// check makes sure that it was the whole day that was aggregated.
func (r *reportDay) check(result workflows.DayResult, records int) {
	require.False(r.b, result.Empty)
	if r.target == report.CloudTarget {
		var d report.CloudDaily
		require.NoError(r.b, r.aggregator.Store.ReadJSON(r.b.Context(), result.DailyKey, &d))
		require.EqualValues(r.b, records, d.DataQuality.FastActual+d.DataQuality.SlowActual)
		require.Equal(r.b, report.Danger, d.OverallStatus)
		return
	}
	var d report.FactoryDaily
	require.NoError(r.b, r.aggregator.Store.ReadJSON(r.b.Context(), result.DailyKey, &d))
	q := d.DataQuality
	require.EqualValues(r.b, records, q.FactoryStateActualCount+q.RiskScoreActualCount+q.InfraStateActualCount)
	require.Greater(r.b, records, 61_000)
	require.EqualValues(r.b, 1, q.InvalidRecordCount)
	require.Equal(r.b, "0", d.Risk.MinScore.String(), "the outage")
	require.Equal(r.b, report.Danger, d.OverallStatus)
}

// act runs an activity as a worker would.
func act[Out, In any](activity func(context.Context, In) (Out, error), in In) (Out, error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(10 * time.Minute)
	env.RegisterActivity(activity)
	var out Out
	value, err := env.ExecuteActivity(activity, in)
	if err != nil {
		return out, err
	}
	return out, value.Get(&out)
}

// empty removes the day's objects, a thousand at a time.
func (r *reportDay) empty() {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	client, ok := r.bucket.Client.(*s3.Client)
	require.True(r.b, ok)
	var group errgroup.Group
	group.SetLimit(4)
	remove := func(batch []types.ObjectIdentifier) {
		group.Go(func() error {
			_, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &r.bucket.Name, Delete: &types.Delete{Objects: batch}})
			return err
		})
	}
	var batch []types.ObjectIdentifier
	for object, err := range r.bucket.List(ctx, "", "") {
		require.NoError(r.b, err)
		if batch = append(batch, types.ObjectIdentifier{Key: &object.Key}); len(batch) == 1000 {
			remove(batch)
			batch = nil
		}
	}
	if len(batch) > 0 {
		remove(batch)
	}
	require.NoError(r.b, group.Wait())
}

// cpuSeconds is the processor time that this process has used.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// forgetPeak has the kernel measure the greatest resident size from now on
// (proc(5), clear_refs).
func forgetPeak(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600))
}

// peakMB is the greatest resident size of this process in megabytes.
func peakMB(t testing.TB) float64 {
	t.Helper()
	status, err := os.Open("/proc/self/status")
	require.NoError(t, err)
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "VmHWM" {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		require.NoError(t, err)
		return kilobytes / 1000
	}
	require.Fail(t, "the kernel tells no VmHWM", fmt.Sprint(os.Getpid()))
	return 0
}
