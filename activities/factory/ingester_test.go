package factory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	storage "millrace/storage/factory"
	"millrace/storage/storagetest"
	"millrace/storage/table"
)

// world is an ingester on stores of its own, with a clock that the test moves.
type world struct {
	t     *testing.T
	now   time.Time
	store storage.Store
}

func newClock() time.Time { return time.Date(2026, 5, 20, 8, 28, 0, 0, time.UTC) }

func newWorld(t *testing.T) *world {
	return &world{
		t:   t,
		now: newClock(),
		store: storage.Store{
			Table: storagetest.Table(t, storagetest.Factory), Bucket: storagetest.Bucket(t), HistoryTTL: 2 * time.Hour,
		},
	}
}

func (w *world) ingester() Ingester {
	return Ingester{Store: w.store, Now: func() time.Time { return w.now }}
}

// take ingests and projects one message, as the consumer does.
func (w *world) take(e Envelope) Result {
	w.t.Helper()
	result, err := take(w.t.Context(), w.ingester(), e)
	require.NoError(w.t, err)
	return result
}

func take(ctx context.Context, i Ingester, e Envelope) (Result, error) {
	result, err := i.Ingest(ctx, e, nil)
	if err != nil {
		return Result{}, err
	}
	return result, i.Project(ctx, result)
}

func (w *world) latest(factoryID string) *factory.Latest {
	w.t.Helper()
	latest, err := w.store.Latest(w.t.Context(), factoryID)
	require.NoError(w.t, err)
	return latest
}

func (w *world) history(factoryID string) []factory.Latest {
	w.t.Helper()
	var rows []factory.Latest
	for item, err := range w.store.Table.Query(w.t.Context(), table.Range{
		Partition: factory.PK(factoryID), From: factory.HistoryPrefix, To: factory.HistoryPrefix + "~", Consistent: true,
	}) {
		require.NoError(w.t, err)
		var row factory.Latest
		require.NoError(w.t, table.Decode(item, &row))
		rows = append(rows, row)
	}
	return rows
}

func (w *world) keys(prefix string) []string {
	w.t.Helper()
	var keys []string
	for object, err := range w.store.Bucket.List(w.t.Context(), prefix, "") {
		require.NoError(w.t, err)
		keys = append(keys, object.Key)
	}
	return keys
}

func (w *world) dirty() int {
	w.t.Helper()
	n := 0
	for _, err := range w.store.Table.Query(w.t.Context(), table.Range{Partition: factory.DirtyGraphPK, From: "0", To: "~"}) {
		require.NoError(w.t, err)
		n++
	}
	return n
}

const payloadOfFactoryState = `{"aggregation_window_seconds":3,"sensor":{"sample_count":2,"temperature_celsius_avg":22.845,"humidity_percent_avg":48.4,"pressure_hpa_avg":null},"ai_result":{"sample_count":2,"fire_score":0,"fall_score":0,"bend_score":0,"abnormal_sound":"none"}}`

const payloadOfInfraState = `{"heartbeat":{"agent_status":"alive"},"node_summary":{"total":2,"ready":2,"not_ready":0},"nodes":[{"node_id":"master","role":"control-plane","ready":true,"disk_usage_percent":24,"network_reachability":"ok"}],"workload_summary":{"total":1,"running":1,"not_running":0},"workloads":[],"devices":{"bme280":{"available":true}}}`

func payloadOfImage(factoryID string) string {
	return fmt.Sprintf(`{"event_type":"FIRE","content_type":"image/jpeg","size_bytes":10,"sha256":"%s","s3_bucket":"b","s3_key":"image_snapshot/factory_id=%s/yyyy=2026/mm=05/dd=20/hh=08/a.jpg"}`, strings.Repeat("0", 64), factoryID)
}

func messageOf(source factory.SourceType, at time.Time) Envelope {
	return messageWith(source, at, map[factory.SourceType]string{
		factory.SourceFactoryState:  payloadOfFactoryState,
		factory.SourceInfraState:    payloadOfInfraState,
		factory.SourceImageSnapshot: payloadOfImage("factory-x"),
	}[source])
}

func messageWith(source factory.SourceType, at time.Time, payload string) Envelope {
	stamp := at.UTC().Format(time.RFC3339Nano)
	body := fmt.Sprintf(`{"schema_version":"0.1.0","message_id":"factory-x:%[1]s:n1:%[2]s","factory_id":"factory-x","node_id":"n1","environment_type":"vm-mac","source_type":"%[1]s","source_timestamp":"%[2]s","published_at":null,"payload":%[3]s}`, source, stamp, payload)
	return Envelope{Body: []byte(body), Topic: "aegis/factory-x/" + string(source), ReceivedAt: at.Add(time.Second).UnixMilli(), TraceID: "trace-1"}
}

func TestEachSourceTypeReachesItsReadModels(t *testing.T) {
	w := newWorld(t)
	at := w.now.Add(-3 * time.Second)

	require.Equal(t, Applied, w.take(messageOf(factory.SourceFactoryState, at)).Outcome)
	require.Equal(t, Applied, w.take(messageOf(factory.SourceInfraState, at)).Outcome)
	require.Equal(t, Applied, w.take(messageOf(factory.SourceImageSnapshot, at)).Outcome)

	latest := w.latest("factory-x")
	require.EqualValues(t, 3, latest.Rev)
	require.Equal(t, "22.845", latest.FactoryState.TemperatureCelsius.String())
	require.Nil(t, latest.FactoryState.PressureHPA, "null stays null")
	require.Equal(t, "100", latest.Risk.Score.String())
	require.Equal(t, factory.Normal, latest.PipelineStatus.Status)
	require.Equal(t, "vm-mac", latest.EnvironmentType)
	require.Equal(t, "FIRE", latest.LatestImageSnapshot.EventType)
	require.Len(t, w.history("factory-x"), 2, "pictures leave no history")
	require.Len(t, w.keys("processed/factory-x/"), 3+1+2)
	require.Len(t, w.keys("processed/factory-x/state_snapshot/"), 2)
	require.Len(t, w.keys("processed/factory-x/risk_score/"), 1)
}

func TestADuplicateChangesNothing(t *testing.T) {
	for _, source := range factory.SourceTypes {
		t.Run(string(source), func(t *testing.T) {
			w := newWorld(t)
			e := messageOf(source, w.now.Add(-3*time.Second))
			w.take(e)
			before, keys, history := w.latest("factory-x"), w.keys(""), w.history("factory-x")
			w.now = w.now.Add(time.Minute)
			require.Equal(t, Duplicate, w.take(e).Outcome)
			require.Equal(t, before, w.latest("factory-x"))
			require.Equal(t, keys, w.keys(""))
			require.Equal(t, history, w.history("factory-x"))
			require.Zero(t, w.dirty())
		})
	}
}

func TestADuplicateOfAnOlderAppliedMessageChangesNothing(t *testing.T) {
	w := newWorld(t)
	first := messageOf(factory.SourceFactoryState, w.now.Add(-6*time.Second))
	w.take(first)
	w.now = w.now.Add(time.Second)
	w.take(messageOf(factory.SourceFactoryState, w.now.Add(-3*time.Second)))
	before, keys := w.latest("factory-x"), w.keys("")
	require.Equal(t, Duplicate, w.take(first).Outcome)
	require.Equal(t, before, w.latest("factory-x"))
	require.Equal(t, keys, w.keys(""))
	require.Zero(t, w.dirty())
}

func TestALateMessageIsStoredButReplacesNothing(t *testing.T) {
	w := newWorld(t)
	w.take(messageOf(factory.SourceFactoryState, w.now.Add(-3*time.Second)))
	before := w.latest("factory-x")
	late := messageOf(factory.SourceFactoryState, w.now.Add(-10*time.Minute))
	require.Equal(t, Late, w.take(late).Outcome)
	require.Equal(t, before, w.latest("factory-x"))
	require.Len(t, w.history("factory-x"), 1)
	require.Len(t, w.keys("processed/factory-x/risk_score/"), 1, "a late message has no risk")
	require.Equal(t, 1, w.dirty())

	var object factory.Processed
	m, err := factory.ParseMessage(late.Body, w.now)
	require.NoError(t, err)
	require.NoError(t, w.store.Read(t.Context(), processedKey(m), &object))
	require.True(t, object.Late)

	require.Equal(t, Duplicate, w.take(late).Outcome)
	require.Equal(t, 1, w.dirty())
}

func TestBadMessagesAreQuarantinedWithTheReason(t *testing.T) {
	at := newClock().Add(-3 * time.Second)
	good := string(messageOf(factory.SourceFactoryState, at).Body)
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	cases := []struct {
		name, body, topic, field string
	}{
		{"not JSON", `{"message_id":`, "aegis/factory-x/factory_state", "body"},
		{"two values", `{}{}`, "aegis/factory-x/factory_state", "body"},
		{"an array", `[1]`, "aegis/factory-x/factory_state", "body"},
		{"huge", `{"a":"` + strings.Repeat("x", factory.MaxBody) + `"}`, "aegis/factory-x/factory_state", "body"},
		{"missing key", swap(`"published_at":null,`, ``), "aegis/factory-x/factory_state", "published_at"},
		{"wrong type", swap(`"node_id":"n1"`, `"node_id":7`), "aegis/factory-x/factory_state", "node_id"},
		{"payload no object", strings.Replace(good, payloadOfFactoryState, `[]`, 1), "aegis/factory-x/factory_state", "payload"},
		{"unknown source type", swap(`"source_type":"factory_state"`, `"source_type":"weather"`), "aegis/factory-x/weather", "source_type"},
		{"slash in id", swap(`"factory_id":"factory-x"`, `"factory_id":"a/b"`), "aegis/a/factory_state", "factory_id"},
		{"dots in message id", swap(`"message_id":"factory-x:`, `"message_id":"..`), "aegis/factory-x/factory_state", "message_id"},
		{"control character", swap(`"node_id":"n1"`, `"node_id":"n\u0000"`), "aegis/factory-x/factory_state", "node_id"},
		{"1,000 characters", swap(`"node_id":"n1"`, `"node_id":"`+strings.Repeat("n", 1000)+`"`), "aegis/factory-x/factory_state", "node_id"},
		{"1970", swap(at.Format(time.RFC3339)+`","published`, `1970-01-01T00:00:00Z","published`), "aegis/factory-x/factory_state", "source_timestamp"},
		{"2100", swap(at.Format(time.RFC3339)+`","published`, `2100-01-01T00:00:00Z","published`), "aegis/factory-x/factory_state", "source_timestamp"},
		{"no zone", swap(at.Format(time.RFC3339)+`","published`, `2026-05-20T08:27:57","published`), "aegis/factory-x/factory_state", "source_timestamp"},
		{"another factory's topic", good, "aegis/factory-y/factory_state", "factory_id"},
		{"another type's topic", good, "aegis/factory-x/infra_state", "source_type"},
		{"a strange topic", good, "elsewhere", "topic"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			e := Envelope{Body: []byte(c.body), Topic: c.topic, ReceivedAt: w.now.UnixMilli(), TraceID: "trace-" + strings.ReplaceAll(c.name, " ", "-")}
			result := w.take(e)
			require.Equal(t, Quarantined, result.Outcome)
			require.Contains(t, result.Reason, c.field)
			var refusal factory.Refusal
			require.NoError(t, w.store.Read(t.Context(), factory.QuarantineKey(e.rawKey()), &refusal))
			require.Equal(t, c.field, refusal.Field)
			require.Equal(t, c.body, string(refusal.Body))
			require.Equal(t, Quarantined, w.take(e).Outcome, "twice is as once")
			require.Nil(t, w.latest("factory-x"))
			keys := w.keys("")
			require.Len(t, keys, 1)
			require.Regexp(t, `^quarantine/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+/yyyy=2026/mm=05/dd=20/[A-Za-z0-9:._-]+\.json$`, keys[0])
		})
	}
}

func TestTimestampsAreUTCWithTheirFraction(t *testing.T) {
	w := newWorld(t)
	e := messageOf(factory.SourceFactoryState, w.now.Add(-3*time.Second))
	body := strings.Replace(string(e.Body), `"source_timestamp":"2026-05-20T08:27:57Z"`, `"source_timestamp":"2026-05-20T17:27:57.250+09:00"`, 1)
	require.Equal(t, Applied, w.take(Envelope{Body: []byte(body), Topic: e.Topic, ReceivedAt: e.ReceivedAt}).Outcome)
	raw, err := json.Marshal(w.latest("factory-x").FactoryState.SourceTimestamp)
	require.NoError(t, err)
	require.Equal(t, `"2026-05-20T08:27:57.25Z"`, string(raw))
	require.Contains(t, w.keys("processed/factory-x/factory_state/")[0], "/hh=08/")
}

var errKilled = errors.New("killed")

// TestAKillBetweenAnyTwoStepsLosesNothing stops the consumer after each step and
// delivers the message again, and also a newer one in between.
func TestAKillBetweenAnyTwoStepsLosesNothing(t *testing.T) {
	steps := []Step{StepParsed, StepRead, StepProcessed, StepCommitted, StepProjected}
	for _, source := range []factory.SourceType{factory.SourceFactoryState, factory.SourceInfraState, factory.SourceImageSnapshot} {
		for _, step := range steps {
			t.Run(fmt.Sprintf("%s after %s", source, step), func(t *testing.T) {
				w := newWorld(t)
				killed := w.killAfter(step, messageOf(source, w.now.Add(-3*time.Second)))
				w.now = w.now.Add(time.Second)
				w.take(killed)
				w.now = w.now.Add(time.Second)
				w.take(killed)
				w.requireOneOfEach(source)
			})
			t.Run(fmt.Sprintf("%s after %s, newer first", source, step), func(t *testing.T) {
				w := newWorld(t)
				killed := w.killAfter(step, messageOf(source, w.now.Add(-3*time.Second)))
				w.now = w.now.Add(time.Second)
				newer := w.take(messageOf(source, w.now.Add(-time.Second)))
				w.now = w.now.Add(time.Second)
				w.take(killed)
				require.Equal(t, newer.Committed.MessageID, w.latest("factory-x").MessageID, "nothing older replaces anything newer")
				require.Len(t, w.keys("processed/factory-x/"+string(source)+"/"), 2)
				w.requireHistoryOrDirty(source)
			})
		}
	}
}

func (w *world) killAfter(step Step, e Envelope) Envelope {
	w.t.Helper()
	i := w.ingester()
	i.At = func(at Step) error {
		if at == step {
			return errKilled
		}
		return nil
	}
	if _, err := take(w.t.Context(), i, e); err != nil {
		require.ErrorIs(w.t, err, errKilled)
	}
	return e
}

func (w *world) requireOneOfEach(source factory.SourceType) {
	w.t.Helper()
	require.EqualValues(w.t, 1, w.latest("factory-x").Rev)
	require.Len(w.t, w.keys("processed/factory-x/"+string(source)+"/"), 1)
	want := map[factory.SourceType][3]int{
		factory.SourceFactoryState: {1, 1, 1}, factory.SourceInfraState: {1, 1, 0}, factory.SourceImageSnapshot: {0, 0, 0},
	}[source]
	require.Len(w.t, w.history("factory-x"), want[0])
	require.Len(w.t, w.keys("processed/factory-x/state_snapshot/"), want[1])
	require.Len(w.t, w.keys("processed/factory-x/risk_score/"), want[2])
	require.Zero(w.t, w.dirty())
}

// requireHistoryOrDirty: the older message is in the history, with all that
// follows from it, or its bucket is computed again from the objects.
func (w *world) requireHistoryOrDirty(source factory.SourceType) {
	w.t.Helper()
	if source == factory.SourceImageSnapshot {
		require.Zero(w.t, w.dirty())
		return
	}
	if len(w.history("factory-x")) == 2 {
		require.Len(w.t, w.keys("processed/factory-x/state_snapshot/"), 2)
		require.Zero(w.t, w.dirty())
		return
	}
	require.Equal(w.t, 1, w.dirty())
}

func TestTwoConsumersNeverLoseAStateOrRewindIt(t *testing.T) {
	w := newWorld(t)
	const n = 20
	errs := make(chan error, 2*n)
	for consumer := range 2 {
		go func() {
			for k := range n {
				at := w.now.Add(-time.Minute + time.Duration(2*k+consumer)*time.Second)
				_, err := take(t.Context(), w.ingester(), messageOf(factory.SourceFactoryState, at))
				errs <- err
			}
		}()
	}
	for range 2 * n {
		require.NoError(t, <-errs)
	}
	latest := w.latest("factory-x")
	require.Equal(t, w.now.Add(-time.Minute+time.Duration(2*n-1)*time.Second), latest.FactoryState.SourceTimestamp)
	require.Len(t, w.history("factory-x"), int(latest.Rev), "one history item per revision")
	require.Len(t, w.keys("processed/factory-x/factory_state/"), 2*n)
	require.Len(t, w.keys("processed/factory-x/state_snapshot/"), int(latest.Rev))
}

func TestUpdatedAtNeverGoesBackWithTheClock(t *testing.T) {
	w := newWorld(t)
	w.take(messageOf(factory.SourceFactoryState, w.now.Add(-4*time.Second)))
	w.now = w.now.Add(-2 * time.Second)
	w.take(messageOf(factory.SourceFactoryState, w.now.Add(-time.Second)))
	rows := w.history("factory-x")
	require.Len(t, rows, 2)
	require.EqualValues(t, 1, rows[1].Rev-rows[0].Rev)
	require.Equal(t, rows[0].UpdatedAt.Add(time.Millisecond), rows[1].UpdatedAt.Time)
}

func TestADrainedBacklogHasItsBucketsComputedAgain(t *testing.T) {
	w := newWorld(t)
	for k := range 3 {
		at := w.now.Add(-30*time.Minute + time.Duration(k)*time.Second)
		require.Equal(t, Applied, w.take(messageOf(factory.SourceFactoryState, at)).Outcome)
	}
	require.Equal(t, 1, w.dirty(), "one bucket, however many messages")
	require.Len(t, w.history("factory-x"), 3)
}
