package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"millrace/domain/monitoring"
	monitoringstore "millrace/storage/monitoring"
)

// MemoryStore is what the memory routes need of the monitoring store.
type MemoryStore interface {
	Memory(ctx context.Context, owner string, a monitoring.MemoryAddress) (monitoring.Memory, error)
	PutMemory(ctx context.Context, owner string, a monitoring.MemoryAddress, value string, now time.Time) (monitoring.Memory, error)
	DeleteMemory(ctx context.Context, owner string, a monitoring.MemoryAddress) error
}

// MemoryValue is the value to keep.
type MemoryValue struct {
	Value string `json:"value" doc:"At most 10,000 characters, in a body of at most 16 KiB."`
}

// Memory is a value that an agent keeps.
type Memory struct {
	Project   string    `json:"project" doc:"The normalised project."`
	Key       string    `json:"key"`
	Value     string    `json:"value"`
	CreatedAt time.Time `json:"createdAt" doc:"When the key was first written."`
	UpdatedAt time.Time `json:"updatedAt" doc:"When the value was last written."`
}

// MemoryPath names a value.
type MemoryPath struct {
	Project string `path:"project" maxLength:"512" doc:"The project in any spelling: case, surrounding spaces and the kind and number of separators do not matter."`
	Key     string `path:"key" maxLength:"256" doc:"1 to 256 visible characters, no spaces."`
}

type putMemoryInput struct {
	MemoryPath
	Body MemoryValue
}

type memoryOutput struct {
	Body Memory
}

type memoryRoutes struct {
	store MemoryStore
	now   func() time.Time
}

// Memories adds the routes of the legacy memory of agents. An owner sees no
// memory of another.
func Memories(store MemoryStore, now func() time.Time) Routes {
	m := memoryRoutes{store: store, now: now}
	const path = "/v1/memory/{project}/{key}"
	return func(r *Router) {
		Handle(r, Operation{
			ID: "get-memory", Method: http.MethodGet, Path: path, Tag: "memory", Scope: monitoring.ScopeRead,
			Summary: "Read a value", Problems: []int{http.StatusNotFound},
		}, m.get)
		Handle(r, Operation{
			ID: "put-memory", Method: http.MethodPut, Path: path, Tag: "memory", Scope: monitoring.ScopeWrite,
			Summary: "Keep a value", MaxBody: monitoring.MaxMemoryRequest,
			Description: "Creates or replaces the value; createdAt stays that of the first write. The last of several writers wins; repeating a write changes updatedAt only. Values never expire.",
			Problems:    []int{http.StatusRequestEntityTooLarge},
		}, m.put)
		Handle(r, Operation{
			ID: "delete-memory", Method: http.MethodDelete, Path: path, Tag: "memory", Scope: monitoring.ScopeWrite,
			Summary: "Forget a value", Description: "Idempotent: forgetting what is not there answers 204 too.",
		}, m.remove)
	}
}

func (in *MemoryPath) address() (monitoring.MemoryAddress, error) {
	a, err := monitoring.NewMemoryAddress(in.Project, in.Key)
	return a, under("path", err)
}

func (m memoryRoutes) get(ctx context.Context, in *MemoryPath) (*memoryOutput, error) {
	address, err := in.address()
	if err != nil {
		return nil, err
	}
	memory, err := m.store.Memory(ctx, PrincipalFrom(ctx).Owner, address)
	if errors.Is(err, monitoringstore.ErrMemoryNotFound) {
		return nil, NewProblem(http.StatusNotFound, "not-found", "nothing is kept there")
	}
	if err != nil {
		return nil, err
	}
	return &memoryOutput{Body: memoryOf(memory)}, nil
}

func (m memoryRoutes) put(ctx context.Context, in *putMemoryInput) (*memoryOutput, error) {
	address, err := in.address()
	if err != nil {
		return nil, err
	}
	if err := monitoring.CheckMemoryValue(in.Body.Value); err != nil {
		return nil, inBody(err)
	}
	memory, err := m.store.PutMemory(ctx, PrincipalFrom(ctx).Owner, address, in.Body.Value, m.now())
	if err != nil {
		return nil, err
	}
	return &memoryOutput{Body: memoryOf(memory)}, nil
}

func (m memoryRoutes) remove(ctx context.Context, in *MemoryPath) (*struct{}, error) {
	address, err := in.address()
	if err != nil {
		return nil, err
	}
	return nil, m.store.DeleteMemory(ctx, PrincipalFrom(ctx).Owner, address)
}

func memoryOf(m monitoring.Memory) Memory {
	return Memory{Project: m.Project, Key: m.Key, Value: m.Value, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt}
}
