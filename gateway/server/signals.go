package server

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/errgroup"

	"millrace/domain/exact"
	"millrace/domain/monitoring"
	"millrace/domain/observability"
)

// SignalStore is what ingest needs of the governance table.
type SignalStore interface {
	Put(ctx context.Context, signal observability.Signal) (fresh bool, err error)
}

const (
	// maxSignalBody bounds a batch of signals.
	maxSignalBody = 1 << 20
	// SignalConcurrency is how many signals of one request are kept at once: fewer
	// than StoreConcurrency, so that a batch leaves room for other requests.
	SignalConcurrency = 8
)

// Outcomes of a signal.
const (
	outcomeAccepted  = "accepted"
	outcomeDuplicate = "duplicate"
	outcomeRejected  = "rejected"
)

// SignalResult is what became of one signal.
type SignalResult struct {
	SignalID string `json:"signal_id,omitempty" doc:"The id, also where the signal had none: a UUIDv5 of its content."`
	Status   string `json:"status" enum:"accepted,duplicate,rejected"`
	Field    string `json:"field,omitempty" doc:"The field that breaks a rule."`
	Rule     string `json:"rule,omitempty" doc:"The rule that it breaks."`
	// Cost is given where the price table made it.
	CostUSD       *exact.Decimal `json:"cost_usd,omitempty" doc:"The cost that the price table gave the signal; absent where the signal had one, or no price is known."`
	CostSource    string         `json:"cost_source,omitempty" enum:"price_table"`
	PriceVersion  string         `json:"price_version,omitempty" doc:"Version of the price table."`
	TokenMismatch bool           `json:"token_mismatch,omitempty" doc:"The token buckets do not add up to total_tokens. The signal is kept as it is."`
}

// SignalResults is what became of a request's signals, in their order.
type SignalResults struct {
	Accepted  int            `json:"accepted"`
	Duplicate int            `json:"duplicate"`
	Rejected  int            `json:"rejected"`
	Results   []SignalResult `json:"results" nullable:"false"`
}

type postSignalsInput struct {
	ContentType string `header:"Content-Type" doc:"application/json"`
	// RawBody is declared binary here, for the framework not to look into it;
	// describeSignals says what it is.
	RawBody []byte `contentType:"application/octet-stream"`
}

type signalsOutput struct {
	Body SignalResults
}

// ingest takes in signals, from either door.
type ingest struct {
	store    SignalStore
	prices   observability.Prices
	now      func() time.Time
	outcomes *prometheus.CounterVec
}

// Signals adds the doors of signals: POST /v1/signals and OTLP traces.
func Signals(store SignalStore, prices observability.Prices, registry prometheus.Registerer, now func() time.Time) Routes {
	in := ingest{store: store, prices: prices, now: now, outcomes: promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "millrace_signals_total", Help: "Signals received, by door and outcome.",
	}, []string{"door", "outcome"})}
	return func(r *Router) {
		Handle(r, Operation{
			ID: "post-signals", Method: http.MethodPost, Path: "/v1/signals", Tag: "signals", Scope: monitoring.ScopeSignalsWrite, MaxBody: maxSignalBody,
			Summary: "Send signals",
			Description: "One signal, a list of them, or an object with the list signals; at most 500 and 1 MiB. Each is answered on its own: a bad signal never sinks its batch. " +
				"A signal with the id and timestamp of one that is there is a duplicate and changes nothing, so that a batch may be sent again: a retry must repeat id and timestamp. " +
				"Where the store fails, the answer is 503 or 504: send the whole batch again. The token of app:x may send signals of x only.",
			Problems: []int{http.StatusServiceUnavailable},
		}, in.post)
		describeSignals(r)
		Handle(r, otlpOperation, in.traces)
		describeTraces(r)
	}
}

func (in ingest) post(ctx context.Context, request *postSignalsInput) (*signalsOutput, error) {
	if kind, _, err := mime.ParseMediaType(request.ContentType); err != nil || kind != "application/json" {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported-media-type", "signals are application/json")
	}
	elements, err := observability.ParseBatch(request.RawBody)
	if err != nil {
		return nil, signalProblem("body", err)
	}
	signals, errs := make([]observability.Signal, len(elements)), make([]error, len(elements))
	for i, element := range elements {
		signals[i], errs[i] = parseSignal(element)
	}
	results, err := in.take(ctx, "signals", signals, errs)
	if err != nil {
		return nil, err
	}
	return &signalsOutput{Body: results}, nil
}

func parseSignal(element json.RawMessage) (observability.Signal, error) {
	if len(element) == 0 || element[0] != '{' {
		return observability.Signal{}, &observability.InvalidError{Field: "signal", Rule: "must be one JSON object"}
	}
	return observability.ParseSignal(element)
}

// take keeps the signals that are good, several at once; errs are those of
// signals that could not be read. An error is one of the store: what was kept is
// a duplicate when the batch is sent again.
func (in ingest) take(ctx context.Context, door string, signals []observability.Signal, errs []error) (SignalResults, error) {
	now := in.now()
	app, bound := strings.CutPrefix(PrincipalFrom(ctx).Owner, "app:")
	out := SignalResults{Results: make([]SignalResult, len(signals))}
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(SignalConcurrency)
	for i, signal := range signals {
		err := errs[i]
		if err == nil && bound && signal.AppID != app {
			err = &observability.InvalidError{Field: "app_id", Rule: "must be the application of the token"}
		}
		if err == nil {
			signal, err = signal.Receive(now, in.prices)
		}
		out.Results[i] = resultOf(signal, err)
		if err != nil {
			continue
		}
		work.Go(func() error {
			fresh, err := in.store.Put(workCtx, signal)
			if err == nil && !fresh {
				out.Results[i].Status = outcomeDuplicate
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return out, err
	}
	for _, result := range out.Results {
		switch result.Status {
		case outcomeAccepted:
			out.Accepted++
		case outcomeDuplicate:
			out.Duplicate++
		default:
			out.Rejected++
		}
	}
	for outcome, n := range map[string]int{outcomeAccepted: out.Accepted, outcomeDuplicate: out.Duplicate, outcomeRejected: out.Rejected} {
		in.outcomes.WithLabelValues(door, outcome).Add(float64(n))
	}
	return out, nil
}

func resultOf(s observability.Signal, err error) SignalResult {
	result := SignalResult{SignalID: s.SignalID, Status: outcomeAccepted, TokenMismatch: s.TokenMismatch}
	var broken *observability.InvalidError
	switch {
	case errors.As(err, &broken):
		return SignalResult{Status: outcomeRejected, Field: broken.Field, Rule: broken.Rule}
	case err != nil:
		return SignalResult{Status: outcomeRejected, Field: "signal", Rule: "can't be read"}
	case s.CostSource == observability.CostPrices:
		result.CostUSD, result.CostSource, result.PriceVersion = s.CostUSD, s.CostSource, s.PriceVersion
	}
	return result
}

// signalProblem says that a field which breaks a rule is one of a place.
func signalProblem(place string, err error) error {
	var broken *observability.InvalidError
	if !errors.As(err, &broken) {
		return err
	}
	field := broken.Field
	if field != place {
		field = place + "." + field
	}
	return invalidInput(field, broken.Rule)
}

// describeSignals tells the contract what the body is, which the framework takes
// unread.
func describeSignals(r *Router) {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: doc} }
	count := func(doc string) *huma.Schema { return &huma.Schema{Type: huma.TypeInteger, Description: doc} }
	signal := &huma.Schema{Type: huma.TypeObject, Required: []string{"app_id", "timestamp", "protocol", "type"}, Properties: map[string]*huma.Schema{
		"signal_id":           text("1 to 128 of A-Z, a-z, 0-9, . _ : -; where it is absent, a UUIDv5 of the signal."),
		"app_id":              text("1 to 64 of A-Z, a-z, 0-9, . _ -"),
		"request_id":          text("Like signal_id. Signals without one belong to no trace."),
		"timestamp":           text("When it happened: RFC 3339 with a zone, at most 5 minutes ahead and 48 hours old."),
		"protocol":            {Type: huma.TypeString, Enum: []any{"aigp", "acp", "alp", "uop"}},
		"type":                {Type: huma.TypeString, Enum: []any{"request", "response", "tool_call", "decision", "error", "span"}},
		"status":              {Type: huma.TypeString, Enum: []any{"ok", "error"}, Description: "By default ok, for the type error error."},
		"name":                text("At most 256 characters."),
		"parent_signal_id":    text("Like signal_id."),
		"model":               text("At most 256 characters."),
		"duration_ms":         {Type: huma.TypeNumber, Description: "0 to 604800000, at most 6 decimal places; a string is taken too."},
		"cost_usd":            {Type: huma.TypeNumber, Description: "0 to 100000, at most 30 decimal places, kept exactly; a string is taken too. Where it is absent, the price table may know it."},
		"input_tokens":        count("Tokens of input that were not cached. The buckets are disjoint."),
		"cached_input_tokens": count("Tokens of input read from a cache."),
		"output_tokens":       count("Tokens of output without reasoning."),
		"reasoning_tokens":    count("Tokens of reasoning."),
		"total_tokens":        count("The sum of the buckets; a different one is kept and flagged."),
		"attributes":          {Type: huma.TypeObject, AdditionalProperties: text(""), Description: "At most 128 strings and 8 KiB."},
	}}
	r.api.OpenAPI().Components.Schemas.Map()["Signal"] = signal
	reference := &huma.Schema{Ref: "#/components/schemas/Signal"}
	list := &huma.Schema{Type: huma.TypeArray, Items: reference}
	operation := r.api.OpenAPI().Paths["/v1/signals"].Post
	operation.RequestBody.Content = map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{AnyOf: []*huma.Schema{
		reference, list, {Type: huma.TypeObject, Required: []string{"signals"}, Properties: map[string]*huma.Schema{"signals": list}},
	}}}}
}
