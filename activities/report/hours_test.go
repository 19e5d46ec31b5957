package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/factory"
	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	"millrace/storage/objects"
	workflows "millrace/workflows/report"
)

func TestAFactoryHourReadsEachObjectOnce(t *testing.T) {
	p := newPlant(t)
	require.Equal(t, 1200+1200+180, p.telemetry("factory-a", 0, time.Hour))
	p.snapshots("factory-a", 0, time.Hour)
	p.calls.Take()
	result := p.hour("factory-a", "00")
	require.Equal(t, map[string]int{"ListObjectsV2": 2 + 2 + 1 + 1, "GetObject": 1200 + 1200 + 180 + 1, "PutObject": 1}, p.calls.Take(),
		"pages of 1,000; of the snapshots one page and the last one")
	require.Equal(t, workflows.HourSuccess, result.Status)
	require.Equal(t, map[string]int{"factory_state": 1200, "risk_score": 1200, "infra_state": 180}, result.InputCounts)
	require.Equal(t, "reports/daily/yyyy=2026/mm=01/dd=01/factory-a/intermediate/hourly/hh=00.json", result.SummaryKey)
	summary := p.summary(result.SummaryKey)
	require.Equal(t, "99", summary.Snapshot.RiskScore.String(), "the last snapshot of the hour, at :59")

	first := p.bytes(result.SummaryKey)
	p.hour("factory-a", "00")
	require.Equal(t, first, p.bytes(result.SummaryKey), "again gives the same bytes")
}

func TestAnHourHasWhatBelongsToItAlone(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 50*time.Minute, 70*time.Minute)
	p.telemetry("factory-b", 0, 10*time.Minute)
	require.Equal(t, 200, p.hour("factory-a", "00").InputCounts["factory_state"])
	require.Equal(t, 200, p.hour("factory-a", "01").InputCounts["factory_state"])
	empty := p.hour("factory-a", "02")
	require.Equal(t, workflows.HourEmpty, empty.Status)
	require.Equal(t, "empty", p.summary(empty.SummaryKey).Status, "an empty hour has its summary")
}

func TestAZoneOffTheHourReadsBothPartitions(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 3*time.Hour+30*time.Minute, 4*time.Hour+30*time.Minute)
	result, err := run(t, p.SummariseHour, workflows.HourRequest{Target: "factory-a", Date: newYear, Timezone: "Asia/Kolkata", Hour: "00"})
	require.NoError(t, err)
	require.Equal(t, 1200, result.InputCounts["factory_state"], "18:30 to 19:30 UTC")
}

func TestAnHourThatTheClocksRepeatIsOne(t *testing.T) {
	p := newPlant(t)
	repeated := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC).Sub(dayStart)
	p.telemetry("factory-a", repeated-5*time.Minute, repeated+5*time.Minute)
	result, err := run(t, p.SummariseHour, workflows.HourRequest{Target: "factory-a", Date: "2026-10-25", Timezone: "Europe/Berlin", Hour: "02"})
	require.NoError(t, err)
	require.Equal(t, 200, result.InputCounts["factory_state"], "02:55 summer time and 02:05 winter time")
	require.EqualValues(t, 2400, p.summary(result.SummaryKey).ExpectedCounts.FactoryState)
}

func TestBrokenObjectsAreOnlyCounted(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 0, 5*time.Minute)
	prefix := factory.ProcessedPrefix("factory-a", "factory_state", dayStart)
	require.NoError(t, p.Store.Bucket.Put(t.Context(), prefix+"broken.json", objects.JSON, []byte(`{"factory_id":"factory-a","pay`)))
	require.NoError(t, p.Store.Bucket.Put(t.Context(), prefix+"huge.json", objects.JSON, []byte(strings.Repeat(" ", maxObject+1))))
	result := p.hour("factory-a", "00")
	require.Equal(t, 100, result.InputCounts["factory_state"])
	require.EqualValues(t, 2, p.summary(result.SummaryKey).InputCounts.InvalidRecords)
}

func TestAnObjectThatWasDeletedMeanwhileIsPassedOver(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 0, 5*time.Minute)
	gone := 0
	p.Store.Bucket.Client = &flaky{API: p.Store.Bucket.Client, fail: func(key string, _ int) error {
		if strings.Contains(key, "/factory_state/") && gone < 3 {
			gone++
			return &types.NoSuchKey{}
		}
		return nil
	}}
	result := p.hour("factory-a", "00")
	require.Equal(t, 97, result.InputCounts["factory_state"])
	require.Zero(t, p.summary(result.SummaryKey).InputCounts.InvalidRecords)
}

func TestAStoreThatRefusesSometimesCostsNoHour(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 0, 5*time.Minute)
	f := &flaky{API: p.Store.Bucket.Client, fail: func(key string, nth int) error {
		if len(key)%3 == 0 && nth < getTries {
			return errors.New("slow down")
		}
		return nil
	}}
	p.Store.Bucket.Client = f
	require.Equal(t, 100, p.hour("factory-a", "00").InputCounts["factory_state"])

	f.fail = func(string, int) error { return errors.New("slow down") }
	_, err := run(t, p.SummariseHour, workflows.HourRequest{Target: "factory-a", Date: newYear, Timezone: seoul, Hour: "00"})
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	require.False(t, failed.NonRetryable(), "and one that is down is waited for by Temporal")
}

func TestObjectsBeyondTheBoundAreSaid(t *testing.T) {
	p := newPlant(t)
	p.Settings.MaxObjectsPerHour = 150
	require.Equal(t, 100+100+15, p.telemetry("factory-a", 0, 5*time.Minute))
	p.calls.Take()
	result := p.hour("factory-a", "00")
	require.Equal(t, map[string]int{"factory_state": 67, "risk_score": 67, "infra_state": 15}, result.InputCounts, "the longest lists give way")
	require.Equal(t, 149, p.calls.Take()["GetObject"])
	require.EqualValues(t, 66, p.summary(result.SummaryKey).InputCounts.UnreadObjects)
}

func TestAnHourOfTheCloudInfrastructure(t *testing.T) {
	p := newPlant(t)
	day := reporttest.CloudDay{Start: dayStart, End: dayStart.Add(time.Hour), Calm: true}
	_, err := reporttest.Write(t.Context(), p.Store.Bucket, day.Objects(), writers)
	require.NoError(t, err)
	p.calls.Take()
	result := p.hour(report.CloudTarget, "00")
	require.Equal(t, map[string]int{"ListObjectsV2": 2, "GetObject": 72, "PutObject": 1}, p.calls.Take())
	require.Equal(t, map[string]int{"fast": 60, "slow": 12}, result.InputCounts)
	require.Equal(t, workflows.HourSuccess, result.Status)
}

func TestARequestThatCannotBeMeantIsFinal(t *testing.T) {
	p := newPlant(t)
	good := workflows.HourRequest{Target: "factory-a", Date: newYear, Timezone: seoul, Hour: "00"}
	for _, change := range []func(*workflows.HourRequest){
		func(r *workflows.HourRequest) { r.Target = "../raw" },
		func(r *workflows.HourRequest) { r.Date = "2026-02-30" },
		func(r *workflows.HourRequest) { r.Timezone = "Local" },
		func(r *workflows.HourRequest) { r.Hour = "24" },
	} {
		req := good
		change(&req)
		_, err := run(t, p.SummariseHour, req)
		failed, ok := errors.AsType[*temporal.ApplicationError](err)
		require.True(t, ok)
		require.True(t, failed.NonRetryable(), "%+v", req)
		require.Equal(t, workflows.ErrorInvalidInput, failed.Type())
	}
	require.Empty(t, p.calls.Take())
}

func TestADayIsMergedFromItsHours(t *testing.T) {
	p := newPlant(t)
	p.telemetry("factory-a", 0, 10*time.Minute)
	p.telemetry("factory-a", 23*time.Hour+59*time.Minute, 24*time.Hour)
	for _, hour := range []string{"00", "01", "23"} {
		p.hour("factory-a", hour)
	}
	request := workflows.DayRequest{Target: "factory-a", Date: newYear, Timezone: seoul}
	p.calls.Take()
	day, err := run(t, p.MergeDay, request)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"GetObject": 24, "PutObject": 2}, p.calls.Take())
	require.False(t, day.Empty)
	require.WithinDuration(t, time.Now(), day.StoredAt, time.Minute)
	var daily report.FactoryDaily
	require.NoError(t, p.Store.ReadJSON(t.Context(), day.DailyKey, &daily))
	require.EqualValues(t, 21, daily.DataQuality.MissingHourCount)
	require.EqualValues(t, 220, daily.DataQuality.FactoryStateActualCount)
	contextBefore, dailyBefore := p.bytes(day.ContextKey), p.bytes(day.DailyKey)
	again, err := run(t, p.MergeDay, request)
	require.NoError(t, err)
	require.Equal(t, []string{contextBefore, dailyBefore, day.ContextDigest}, []string{p.bytes(day.ContextKey), p.bytes(day.DailyKey), again.ContextDigest})
}

func TestAnEmptyDayHasAContext(t *testing.T) {
	p := newPlant(t)
	for _, target := range []string{"factory-a", report.CloudTarget} {
		p.hour(target, "00")
		day, err := run(t, p.MergeDay, workflows.DayRequest{Target: target, Date: newYear, Timezone: seoul})
		require.NoError(t, err)
		require.True(t, day.Empty, target)
		require.NotEmpty(t, p.bytes(day.ContextKey))
	}
}

func TestASummaryThatIsDamagedIsFinal(t *testing.T) {
	p := newPlant(t)
	key := report.HourKey("reports/daily", newYear, "factory-a", "05")
	require.NoError(t, p.Store.Bucket.Put(t.Context(), key, objects.JSON, []byte("{")))
	_, err := run(t, p.MergeDay, workflows.DayRequest{Target: "factory-a", Date: newYear, Timezone: seoul})
	require.ErrorContains(t, err, key)
	failed, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	require.True(t, failed.NonRetryable())
}

// TestABrokenObjectCountsInOneHour has a zone whose hours touch two partitions.
func TestABrokenObjectCountsInOneHour(t *testing.T) {
	p := newPlant(t)
	for _, key := range []string{"factory-a/factory_state/yyyy=2026/mm=01/dd=01/hh=06/broken.json", "cloud_infra/fast/yyyy=2026/mm=01/dd=01/hh=06/broken.json"} {
		require.NoError(t, p.Store.Bucket.Put(t.Context(), "processed/"+key, "application/json", []byte("{")))
	}
	for _, target := range []string{"factory-a", report.CloudTarget} {
		var invalid []int64
		for _, hour := range []string{"10", "11", "12"} { // 06:00 UTC is 11:30
			result, err := run(t, p.SummariseHour, workflows.HourRequest{Target: target, Date: newYear, Timezone: "Asia/Kolkata", Hour: hour})
			require.NoError(t, err)
			var summary struct {
				InputCounts struct {
					Invalid int64 `json:"invalid_records"`
				} `json:"input_counts"`
			}
			require.NoError(t, json.Unmarshal([]byte(p.bytes(result.SummaryKey)), &summary))
			invalid = append(invalid, summary.InputCounts.Invalid)
		}
		require.Equal(t, []int64{0, 1, 0}, invalid, target)
	}
}
