package factory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
	workflows "millrace/workflows/factory"
)

func (a *archive) reconciler(t *testing.T) Reconciler {
	return Reconciler{
		Store: a.store, Telemetry: newQueue(t), FactoryIDs: []string{"factory-x"},
		Now: func() time.Time { return a.now }, Pause: time.Millisecond, Logger: quiet(),
	}
}

// hourly is what an hourly run at the world's time asks for.
func (a *archive) hourly() workflows.ReconcileFactoryRequest {
	return workflows.ReconcileFactoryRequest{FactoryID: "factory-x", From: a.now.Add(-3 * time.Hour), Before: a.now.Add(-settleTime)}
}

func (a *archive) complete() workflows.ReconcileFactoryRequest {
	req := a.hourly()
	req.From, req.Complete = a.now.Add(-26*time.Hour), true
	return req
}

func reconcile(t *testing.T, r Reconciler, req workflows.ReconcileFactoryRequest, resumeFrom ...reconcileProgress) (workflows.ReconcileCounts, error) {
	t.Helper()
	env := repairEnvironment()
	env.RegisterActivity(r.ReconcileFactory)
	for _, p := range resumeFrom {
		env.SetHeartbeatDetails(p)
	}
	value, err := env.ExecuteActivity(r.ReconcileFactory, req)
	if err != nil {
		return workflows.ReconcileCounts{}, err
	}
	var counts workflows.ReconcileCounts
	require.NoError(t, value.Get(&counts))
	return counts, nil
}

func keysOf(envelopes []Envelope) []string {
	var keys []string
	for _, e := range envelopes {
		keys = append(keys, e.RawKey)
	}
	return keys
}

// plainLeaf is a message whose id says nothing of its time.
func plainLeaf(id string, sourceAt time.Time) Envelope {
	e := messageOf(factory.SourceFactoryState, sourceAt)
	e.Body = fmt.Appendf(nil, `{"schema_version":"0.1.0","message_id":%q,"factory_id":"factory-x","node_id":"n1","source_type":"factory_state","source_timestamp":%q,"published_at":null,"payload":%s}`,
		id, sourceAt.Format(time.RFC3339), payloadOfFactoryState)
	return e
}

func TestOnlyWhatWasNeitherProcessedNorRefusedIsEnqueued(t *testing.T) {
	a := newArchive(t)
	a.process(messageOf(factory.SourceFactoryState, at("07:00:00")), at("07:00:01"))
	a.process(messageOf(factory.SourceInfraState, at("07:00:03")), at("07:00:04"))
	refused := messageWith(factory.SourceFactoryState, at("07:00:06"), `"no object"`)
	require.Equal(t, Quarantined, a.process(refused, at("07:00:07")).Outcome)
	missing := a.receive(messageOf(factory.SourceFactoryState, at("07:00:09")), at("07:00:10"))
	infra := a.receive(messageOf(factory.SourceInfraState, at("07:00:09")), at("07:00:10"))
	a.receive(messageOf(factory.SourceFactoryState, at("08:20:00")), at("08:20:01")) // may still be in the queue
	a.receive(messageOf(factory.SourceFactoryState, at("02:00:00")), at("02:00:01")) // an earlier run's

	r := a.reconciler(t)
	counts, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	enqueued := received(t, r.Telemetry)
	require.Equal(t, []string{missing.rawKey(), infra.rawKey()}, keysOf(enqueued))
	require.Equal(t, missing.Body, enqueued[0].Body)
	require.Equal(t, missing.Topic, enqueued[0].Topic)
	require.Equal(t, missing.ReceivedAt, enqueued[0].ReceivedAt)
	require.Equal(t, int64(5), counts.Looked)
	require.Equal(t, int64(2), counts.Processed)
	require.Equal(t, int64(1), counts.Quarantined)
	require.Equal(t, int64(2), counts.Enqueued)

	for _, e := range enqueued {
		a.take(e)
	}
	counts, err = reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Zero(t, counts.Enqueued)
	require.Empty(t, received(t, r.Telemetry))
}

func TestListRequestsOfAnHourlyRunAreBounded(t *testing.T) {
	a := newArchive(t)
	for i := range 120 {
		a.process(messageOf(factory.SourceFactoryState, at("05:40:00").Add(time.Duration(i)*time.Minute)), at("05:40:01").Add(time.Duration(i)*time.Minute))
	}
	for i := range 40 { // long before the window: never listed one by one
		a.receive(messageOf(factory.SourceFactoryState, at("00:10:00").Add(time.Duration(i)*time.Second)), at("00:10:01"))
	}
	a.past.lists = 0
	counts, err := reconcile(t, a.reconciler(t), a.hourly())
	require.NoError(t, err)
	require.Equal(t, int64(120), counts.Looked)
	require.Equal(t, int64(120), counts.Processed)
	// Source types 1; levels of the id 3, the node 1; hours 05, 06 and 07 of processed/ 3.
	require.Equal(t, 8, a.past.lists)
	require.Equal(t, int64(7), counts.Lists)
}

func TestListRequestsOfACompleteRunAreBounded(t *testing.T) {
	a := newArchive(t)
	a.process(messageOf(factory.SourceFactoryState, at("05:00:00")), at("05:00:01"))
	late := a.receive(messageOf(factory.SourceFactoryState, at("05:00:03").AddDate(0, 0, -9)), at("05:30:00"))
	a.past.lists = 0
	r := a.reconciler(t)
	counts, err := reconcile(t, r, a.complete())
	require.NoError(t, err)
	require.Equal(t, []string{late.rawKey()}, keysOf(received(t, r.Telemetry)), "a backlog's message has an old source time")
	// Source types 1; the days of receipt 2; hours of processed/ 2; quarantine/ 1.
	require.Equal(t, 6, a.past.lists)
	require.Equal(t, int64(2), counts.Looked)

	hourly, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Zero(t, hourly.Looked, "an hourly run leaves it to the complete one")
}

func TestUnusualLeavesAreFoundByAnHourlyRun(t *testing.T) {
	a := newArchive(t)
	var want []string
	for _, id := range []string{"0193-uuid", "a:b", "factory-x:c", "factory-x:factory_state", "factory-x:factory_state:n1", "other:factory_state:n1:2026-05-20T07:00:00Z"} {
		want = append(want, a.receive(plainLeaf(id, at("07:00:00")), at("07:00:01")).rawKey())
	}
	traced := messageOf(factory.SourceFactoryState, at("07:00:00"))
	traced.Body, traced.TraceID = []byte(`{"message_id":"../escape"}`), "6ba7b810-9dad"
	want = append(want, a.receive(traced, at("07:00:02")).rawKey())

	r := a.reconciler(t)
	_, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	enqueued := received(t, r.Telemetry)
	require.ElementsMatch(t, want, keysOf(enqueued))
	for _, e := range enqueued {
		a.take(e)
	}
	counts, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Zero(t, counts.Enqueued)
	require.Equal(t, int64(len(want)), counts.Processed+counts.Quarantined)
}

func TestAnObjectProcessedUnderAnotherTimeIsNotEnqueued(t *testing.T) {
	a := newArchive(t)
	a.process(plainLeaf("factory-x:factory_state:n1:2026-05-20T07:00:00Z", at("03:00:00")), at("07:00:01"))
	a.process(plainLeaf("no-time", at("01:00:00")), at("07:00:01"))
	r := a.reconciler(t)
	counts, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Equal(t, int64(2), counts.Processed)
	require.Empty(t, received(t, r.Telemetry))
}

func TestAnObjectThatIsNoMessageIsPassedOver(t *testing.T) {
	a := newArchive(t)
	huge := messageOf(factory.SourceFactoryState, at("07:00:00"))
	huge.Body = make([]byte, factory.MaxBody+1)
	huge.TraceID = "huge"
	a.receive(huge, at("07:00:01"))
	r := a.reconciler(t)
	counts, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Equal(t, int64(1), counts.Unreadable)
	require.Empty(t, received(t, r.Telemetry))
}

func TestBothDaysAreLookedAtAfterMidnight(t *testing.T) {
	a := newArchive(t)
	a.now = at("00:30:00").AddDate(0, 0, 1)
	before := a.receive(messageOf(factory.SourceFactoryState, at("23:59:57")), at("23:59:58"))
	after := a.receive(messageOf(factory.SourceFactoryState, at("23:59:59")), at("00:00:01").AddDate(0, 0, 1))
	r := a.reconciler(t)
	_, err := reconcile(t, r, a.hourly())
	require.NoError(t, err)
	require.Equal(t, []string{before.rawKey(), after.rawKey()}, keysOf(received(t, r.Telemetry)))
	require.Contains(t, after.rawKey(), "dd=21")
}

func TestARetryGoesOnWithTheScopeItEndedIn(t *testing.T) {
	a := newArchive(t)
	a.receive(messageOf(factory.SourceFactoryState, at("07:00:00")), at("07:00:01"))
	second := a.receive(messageOf(factory.SourceInfraState, at("07:00:00")), at("07:00:01"))
	r := a.reconciler(t)
	counts, err := reconcile(t, r, a.hourly(), reconcileProgress{Scopes: 1, Counts: workflows.ReconcileCounts{Enqueued: 1}})
	require.NoError(t, err)
	require.Equal(t, []string{second.rawKey()}, keysOf(received(t, r.Telemetry)))
	require.Equal(t, int64(2), counts.Enqueued)
}

func TestAKillBetweenEveryPairOfStepsEnqueuesAllInTheEnd(t *testing.T) {
	a := newArchive(t)
	for i := range 2*10 + 3 {
		a.receive(messageOf(factory.SourceFactoryState, at("07:00:00").Add(time.Duration(i)*time.Second)), at("07:00:30"))
	}
	for step := 1; ; step++ {
		r := a.reconciler(t)
		r.At = killAt(step)
		_, err := reconcile(t, r, a.hourly())
		if err == nil {
			require.Equal(t, 6, step, "listed, compared and three batches")
			break
		}
		require.ErrorContains(t, err, errKilled.Error())
		r.At = nil
		_, err = reconcile(t, r, a.hourly())
		require.NoError(t, err)
		distinct := make(map[string]bool)
		for _, e := range received(t, r.Telemetry) {
			distinct[e.RawKey] = true
		}
		require.Len(t, distinct, 23, "killed at step %d", step)
	}
}

func TestThePlanCutsOffWhatMayStillBeInTheQueue(t *testing.T) {
	a := newArchive(t)
	a.receive(messageOf(factory.SourceFactoryState, at("07:00:00")), at("07:00:01"))
	require.NoError(t, a.store.Bucket.Put(t.Context(), "raw/factory-y/infra_state/x.json", "", nil))
	r := a.reconciler(t)
	r.FactoryIDs = []string{"factory-z", "factory-x"}
	request := workflows.ReconcileRequest{WindowHours: 3}

	plan, err := r.PlanReconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, workflows.ReconcilePlan{
		FactoryIDs: []string{"factory-x", "factory-y", "factory-z"}, From: at("05:28:00"), Before: at("08:13:00"),
	}, plan)

	soon := request
	soon.SettleSeconds = 90
	plan, err = r.PlanReconcile(t.Context(), soon)
	require.NoError(t, err)
	require.Equal(t, at("08:26:30"), plan.Before)

	require.NoError(t, r.Telemetry.Send(t.Context(), []string{"{}"}))
	plan, err = r.PlanReconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "the queue holds 1 messages of unknown age", plan.Skipped)

	r.OldestAge = func(context.Context) (time.Duration, bool, error) { return 0, false, nil }
	plan, err = r.PlanReconcile(t.Context(), request)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Skipped, "CloudWatch knows nothing")

	r.OldestAge = func(context.Context) (time.Duration, bool, error) { return 40 * time.Minute, true, nil }
	plan, err = r.PlanReconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, at("07:33:00"), plan.Before)
	require.Empty(t, plan.Skipped)
}

func TestAQueueThatIsEmptyForAMomentHasNoBacklog(t *testing.T) {
	a := newArchive(t)
	r := a.reconciler(t)
	r.Pause = 100 * time.Millisecond
	require.NoError(t, r.Telemetry.Send(t.Context(), []string{"{}"}))
	go func() {
		time.Sleep(200 * time.Millisecond)
		messages, err := r.Telemetry.Receive(t.Context(), 1, 0, time.Minute)
		if err == nil {
			_ = r.Telemetry.Delete(t.Context(), messages)
		}
	}()
	plan, err := r.PlanReconcile(t.Context(), workflows.ReconcileRequest{WindowHours: 3})
	require.NoError(t, err)
	require.Empty(t, plan.Skipped)
}
