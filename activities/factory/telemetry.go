package factory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"millrace/domain/factory"
	"millrace/platform/awsconf"
	"millrace/platform/queue"
)

// Observer is told the newest state of a factory after a batch of its messages;
// alert rules hang on it. What it misses, the next refresh sees.
type Observer interface {
	Observe(ctx context.Context, newest factory.Latest) error
}

// telemetryHandler gives queue messages to the ingester, one lane per factory.
// It remembers each factory's last committed state, so that a message costs no
// read; the commit's condition notices when others changed it.
type telemetryHandler struct {
	ingester Ingester
	observer Observer
	metrics  *Metrics
	watched  []string
	logger   *slog.Logger

	mu       sync.Mutex
	states   map[string]*factory.Latest
	outcomes map[string]int64
}

func newTelemetryHandler(d Drains, logger *slog.Logger) *telemetryHandler {
	return &telemetryHandler{
		ingester: d.Ingester, observer: d.Observer, metrics: d.Metrics, watched: d.Watched, logger: logger,
		states: make(map[string]*factory.Latest), outcomes: make(map[string]int64),
	}
}

// Lane is the factory that the topic names.
func (h *telemetryHandler) Lane(m queue.Message) string {
	e, err := decodeEnvelope(m.Body)
	if err != nil {
		return ""
	}
	factoryID, _ := factory.TopicLevels(e.Topic)
	return factoryID
}

// Handle ingests one message; projecting its state runs beside the next ones.
func (h *telemetryHandler) Handle(ctx context.Context, m queue.Message) (func(context.Context) error, error) {
	e, err := decodeEnvelope(m.Body)
	if err != nil {
		e = Envelope{Body: []byte(m.Body), TraceID: m.ID, ReceivedAt: h.ingester.Now().UnixMilli()}
	}
	lane, _ := factory.TopicLevels(e.Topic)
	result, err := h.ingester.Ingest(ctx, e, h.state(lane))
	if err != nil {
		h.remember(lane, nil)
		return nil, classify(err)
	}
	if result.Committed != nil {
		h.remember(lane, result.Committed)
	}
	return func(ctx context.Context) error {
		if err := h.ingester.Project(ctx, result); err != nil {
			return classify(err)
		}
		h.count(e, result)
		return nil
	}, nil
}

// Idle shows the newest state of a factory to the observer.
func (h *telemetryHandler) Idle(ctx context.Context, lane string) {
	newest := h.state(lane)
	if h.observer == nil || newest == nil {
		return
	}
	if err := h.observer.Observe(ctx, *newest); err != nil {
		h.logger.Warn("alerts not signalled, the next refresh does", "factory", lane, "error", err)
	}
}

func (h *telemetryHandler) state(lane string) *factory.Latest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[lane]
}

func (h *telemetryHandler) remember(lane string, state *factory.Latest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, seen := h.states[lane]; !seen && state != nil && !slices.Contains(h.watched, lane) {
		h.logger.Warn("factory sends but is not watched: nobody refreshes or aggregates it", "factory", lane, "setting", "MILLRACE_FACTORY_IDS")
	}
	h.states[lane] = state
}

func (h *telemetryHandler) count(e Envelope, r Result) {
	h.mu.Lock()
	h.outcomes[string(r.Outcome)]++
	h.mu.Unlock()
	h.metrics.observe(r, h.ingester.Now().Sub(e.receivedAt()))
	if r.Outcome == Quarantined {
		h.logger.Warn("message quarantined", "key", factory.QuarantineKey(e.rawKey()), "reason", r.Reason)
	}
}

func (h *telemetryHandler) totals() map[string]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	totals := make(map[string]int64, len(h.outcomes))
	maps.Copy(totals, h.outcomes)
	return totals
}

// classify tells outages from failures of one message. Whatever is neither the
// message's own fault nor a lost race is taken for an outage, so that nothing
// becomes poison while a service is out.
func classify(err error) error {
	if errors.Is(err, errContended) || errors.Is(err, context.Canceled) || awsconf.IsRequestFault(err) {
		return err
	}
	return fmt.Errorf("%w: %w", queue.ErrOutage, err)
}
