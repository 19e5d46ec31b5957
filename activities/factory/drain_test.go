package factory

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"millrace/domain/factory"
	"millrace/platform/queue"
	"millrace/storage/storagetest"
	workflows "millrace/workflows/factory"
)

// consumer is the drain activity on a queue of its own.
type consumer struct {
	*world
	queue queue.Queue
}

func newConsumer(t *testing.T) consumer {
	client, url := storagetest.Queue(t)
	w := newWorld(t)
	w.now = time.Now()
	return consumer{world: w, queue: queue.Queue{Client: client, URL: url}}
}

func (c consumer) send(envelopes ...Envelope) {
	c.t.Helper()
	bodies := make([]string, len(envelopes))
	for i, e := range envelopes {
		body, err := json.Marshal(e)
		require.NoError(c.t, err)
		bodies[i] = string(body)
	}
	require.NoError(c.t, c.queue.Send(c.t.Context(), bodies))
}

func (c consumer) drain(stretch time.Duration, settings queue.Settings) workflows.DrainResult {
	c.t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	settings.Poll = time.Second
	drains := Drains{
		Telemetry: c.queue, Ingester: Ingester{Store: c.store, Now: time.Now},
		Settings: settings, Stretch: stretch, Logger: slog.New(slog.DiscardHandler),
	}
	env.RegisterActivity(drains.DrainTelemetry)
	value, err := env.ExecuteActivity(drains.DrainTelemetry, workflows.DrainRequest{})
	require.NoError(c.t, err)
	var result workflows.DrainResult
	require.NoError(c.t, value.Get(&result))
	return result
}

func TestDrainTakesAFloodOfAllKinds(t *testing.T) {
	c := newConsumer(t)
	start := c.now.Add(-4 * time.Minute)
	var sent []Envelope
	for k := range 60 {
		sent = append(sent, messageOf(factory.SourceFactoryState, start.Add(time.Duration(k)*time.Second)))
	}
	for k := range 12 {
		sent = append(sent, messageOf(factory.SourceInfraState, start.Add(time.Duration(k)*20*time.Second)))
	}
	sent = append(sent, messageOf(factory.SourceImageSnapshot, start))
	sent = append(sent, sent[:20]...)
	bad := sent[0]
	bad.Topic, bad.TraceID = "aegis/factory-x/infra_state", "trace-bad"
	sent = append(sent, bad)
	c.send(sent...)
	require.NoError(t, c.queue.Send(t.Context(), []string{"not an envelope"}))

	result := c.drain(3*time.Second, queue.Settings{})
	require.EqualValues(t, len(sent)+1, result.Deleted)
	require.EqualValues(t, 2, result.Outcomes[string(Quarantined)])
	require.EqualValues(t, len(sent)-1, result.Outcomes[string(Applied)]+result.Outcomes[string(Duplicate)]+result.Outcomes[string(Late)])
	require.Len(t, c.keys("processed/factory-x/factory_state/"), 60)
	require.Len(t, c.keys("processed/factory-x/infra_state/"), 12)
	require.Len(t, c.keys("quarantine/"), 2)
	require.True(t, strings.HasSuffix(c.latest("factory-x").FactoryState.MessageID, start.Add(59*time.Second).UTC().Format(time.RFC3339Nano)))
}

// TestNothingBecomesPoisonWhileDynamoDBRefusesEverything has the table throttle
// for a while: nothing is quarantined, nothing is deleted, and afterwards all of
// it is applied.
func TestNothingBecomesPoisonWhileDynamoDBRefusesEverything(t *testing.T) {
	c := newConsumer(t)
	calls := c.watch()
	calls.Fail(func(operation string) error {
		if !strings.Contains(operation, "Item") {
			return nil
		}
		return &types.ThrottlingException{}
	})
	start := c.now.Add(-time.Minute)
	var sent []Envelope
	for k := range 30 {
		sent = append(sent, messageOf(factory.SourceFactoryState, start.Add(time.Duration(k)*time.Second)))
	}
	c.send(sent...)
	settings := queue.Settings{Visibility: time.Second, MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}

	during := c.drain(3*time.Second, settings)
	require.Zero(t, during.Deleted)
	require.NotZero(t, during.Outages)
	require.Empty(t, c.keys("quarantine/"))

	calls.Fail(nil)
	time.Sleep(time.Second)
	after := c.drain(4*time.Second, settings)
	require.EqualValues(t, len(sent), after.Deleted)
	require.Empty(t, c.keys("quarantine/"))
	require.Len(t, c.keys("processed/factory-x/factory_state/"), len(sent))
	newest, err := factory.ParseMessage(sent[len(sent)-1].Body, c.now)
	require.NoError(t, err)
	require.Equal(t, newest.MessageID, c.latest("factory-x").FactoryState.MessageID)
}

func TestErrorsAreToldApart(t *testing.T) {
	require.NotErrorIs(t, classify(errContended), queue.ErrOutage)
	require.ErrorIs(t, classify(errors.New("connection refused")), queue.ErrOutage)
	require.ErrorIs(t, classify(&types.ThrottlingException{}), queue.ErrOutage)
	require.ErrorIs(t, classify(&types.ResourceNotFoundException{}), queue.ErrOutage)
}
