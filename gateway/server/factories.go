package server

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/singleflight"

	"millrace/domain/factory"
	"millrace/domain/monitoring"
)

// FactoryReader is what the factory routes need of the status table.
type FactoryReader interface {
	Latest(ctx context.Context, factoryID string) (*factory.Latest, error)
	BatchLatest(ctx context.Context, factoryIDs []string) (map[string]factory.Latest, error)
	NewestHistory(ctx context.Context, factoryID, fromSK, toSK string, limit int) ([]factory.Latest, error)
	GraphSeries(ctx context.Context, factoryID, fromSK, toSK string) ([]factory.Graph, error)
}

// factoryListAge is how old the list of factories may be.
const factoryListAge = 10 * time.Second

// History is a factory's past, oldest first: raw elements for windows up to an
// hour, buckets for longer ones.
type History struct {
	Raw     []factory.RawPoint
	Buckets []factory.BucketPoint
}

// MarshalJSON writes the one list that there is.
func (h History) MarshalJSON() ([]byte, error) {
	if h.Buckets != nil {
		return json.Marshal(h.Buckets)
	}
	return json.Marshal(h.Raw)
}

// Schema describes a list of either kind of element.
func (History) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{OneOf: []*huma.Schema{
		r.Schema(reflect.TypeFor[factory.RawPoint](), true, "RawPoint"),
		r.Schema(reflect.TypeFor[factory.BucketPoint](), true, "BucketPoint"),
	}}}
}

// FactoryPath names a factory.
type FactoryPath struct {
	FactoryID string `path:"factory_id" pattern:"^[a-z0-9][a-z0-9-]{0,63}$" doc:"Id of the factory."`
}

type historyInput struct {
	FactoryPath
	Window string `query:"window" pattern:"^[0-9]{1,6}[hmd]$" default:"1h" doc:"How far back to look, at most 48h. Up to 1h gives raw elements, longer ones buckets of 5 minutes, 12h of 10 and 24h of 20."`
	Since  string `query:"since" doc:"RFC 3339 instant: return only what is newer."`
	Limit  int    `query:"limit" minimum:"1" maximum:"2000" doc:"Greatest number of elements, the newest; by default 250 for 10m, 2000 for 1h, 500 for other raw windows, and all buckets."`
}

type factoryListOutput struct {
	Body []factory.FactorySummary
}

type factoryOutput struct {
	Body factory.Latest
}

type historyOutput struct {
	Body History
}

type factoryRoutes struct {
	reader FactoryReader
	ids    []string
	now    func() time.Time

	loading singleflight.Group
	lock    sync.Mutex
	list    []factory.FactorySummary
	readAt  time.Time
}

// Factories adds the reads of factories; ids are those listed.
func Factories(reader FactoryReader, ids []string, now func() time.Time) Routes {
	f := &factoryRoutes{reader: reader, ids: ids, now: now}
	return func(r *Router) {
		Handle(r, Operation{
			ID: "list-factories", Method: http.MethodGet, Path: "/v1/factories", Tag: "factories", Scope: monitoring.ScopeRead,
			Summary: "List factories", Description: "One summary for each configured factory that was ever seen, at most 10 seconds old.",
		}, f.listFactories)
		Handle(r, Operation{
			ID: "get-factory", Method: http.MethodGet, Path: "/v1/factories/{factory_id}", Tag: "factories", Scope: monitoring.ScopeRead,
			Summary: "Read a factory's current state", Description: "The stored LATEST item as it is.", Problems: []int{http.StatusNotFound},
		}, f.get)
		Handle(r, Operation{
			ID: "get-factory-history", Method: http.MethodGet, Path: "/v1/factories/{factory_id}/history", Tag: "factories", Scope: monitoring.ScopeRead,
			Summary: "Read a factory's history", Description: "Oldest first. A window of 24h reads at most 288 buckets. An unknown factory has an empty history.",
		}, f.history)
	}
}

func (f *factoryRoutes) listFactories(ctx context.Context, _ *struct{}) (*factoryListOutput, error) {
	if list, fresh := f.cached(); fresh {
		return &factoryListOutput{Body: list}, nil
	}
	// One read serves all who wait; it must not end with the first of them.
	loaded := f.loading.DoChan("list", func() (any, error) {
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), OperationTimeout)
		defer cancel()
		return f.load(reading)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case result := <-loaded:
		if result.Err != nil {
			return nil, result.Err
		}
		list, _ := result.Val.([]factory.FactorySummary)
		return &factoryListOutput{Body: list}, nil
	}
}

func (f *factoryRoutes) cached() ([]factory.FactorySummary, bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.list, f.list != nil && f.now().Sub(f.readAt) < factoryListAge
}

func (f *factoryRoutes) load(ctx context.Context) ([]factory.FactorySummary, error) {
	readAt := f.now()
	states, err := f.reader.BatchLatest(ctx, f.ids)
	if err != nil {
		return nil, err
	}
	list := make([]factory.FactorySummary, 0, len(states))
	for _, id := range f.ids {
		if state, seen := states[id]; seen {
			list = append(list, state.Summary())
		}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.list, f.readAt = list, readAt
	return list, nil
}

func (f *factoryRoutes) get(ctx context.Context, in *FactoryPath) (*factoryOutput, error) {
	if err := factory.CheckFactoryID(in.FactoryID); err != nil {
		return nil, err
	}
	latest, err := f.reader.Latest(ctx, in.FactoryID)
	if err != nil {
		return nil, err
	}
	if latest == nil {
		return nil, NewProblem(http.StatusNotFound, "not-found", "this factory was never seen")
	}
	return &factoryOutput{Body: *latest}, nil
}

func (f *factoryRoutes) history(ctx context.Context, in *historyInput) (*historyOutput, error) {
	if err := factory.CheckFactoryID(in.FactoryID); err != nil {
		return nil, err
	}
	limit := ""
	if in.Limit > 0 {
		limit = strconv.Itoa(in.Limit)
	}
	plan, err := factory.PlanHistory(in.Window, in.Since, limit, f.now())
	if err != nil {
		return nil, err
	}
	if plan.Model == factory.ReadGraph {
		graphs, err := f.reader.GraphSeries(ctx, in.FactoryID, plan.FromSK, plan.ToSK)
		if err != nil {
			return nil, err
		}
		return &historyOutput{Body: History{Buckets: factory.BucketSeries(graphs, plan)}}, nil
	}
	rows, err := f.reader.NewestHistory(ctx, in.FactoryID, plan.FromSK, plan.ToSK, plan.Limit)
	if err != nil {
		return nil, err
	}
	return &historyOutput{Body: History{Raw: factory.RawSeries(rows, plan)}}, nil
}
