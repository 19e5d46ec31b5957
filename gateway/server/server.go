package server

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"millrace/domain/artifact"
	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/domain/monitoring"
)

// OperationTimeout bounds an operation, waiting for the store included.
const OperationTimeout = 12 * time.Second

// Config has what a server is made of.
type Config struct {
	Tokens TokenStore
	// Ring seals the saved copies of tokens; the zero value saves none.
	Ring monitoring.KeyRing
	// Limits are the budgets of each owner; the zero value stands for the defaults.
	Limits monitoring.Limits
	// Checks tell whether what the server depends on answers, by name.
	Checks map[string]Check
	// Origins are the origins whose pages may call the API.
	Origins  []string
	Logger   *slog.Logger
	Registry prometheus.Registerer
	// Timeout bounds an operation; 0 stands for OperationTimeout.
	Timeout time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Server is the HTTP interface.
type Server struct {
	tokens    TokenStore
	limits    monitoring.Limits
	timeout   time.Duration
	now       func() time.Time
	logger    *slog.Logger
	metrics   *metrics
	exhausted exhausted
	afterUse  *afterUse
	health    *health
	stopping  context.Context //nolint:containedctx // the life of the server, not of a call
	stop      context.CancelFunc
	api       huma.API
	mux       *chi.Mux
}

// New makes a server of the routes of its capabilities. Close it to finish what
// it does in the background.
func New(cfg Config, routes ...Routes) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{
		tokens: cfg.Tokens, limits: cfg.Limits, timeout: cfg.Timeout, now: cfg.Now, logger: cfg.Logger,
		metrics: newMetrics(cfg.Registry), mux: chi.NewMux(),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.health = &health{checks: cfg.Checks, stopping: s.stopping, now: cfg.Now}
	s.afterUse = &afterUse{store: cfg.Tokens, ring: cfg.Ring, now: cfg.Now, logger: cfg.Logger, metrics: s.metrics}
	s.mux.Use(s.observe, cors(cfg.Origins))
	s.mux.NotFound(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, NewProblem(http.StatusNotFound, "not-found", "there is nothing here"))
	})
	s.mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, NewProblem(http.StatusMethodNotAllowed, "method-not-allowed", "this path does not take this method").
			WithHeader("Allow", s.allowed(r)))
	})
	s.api = newAPI(s.mux)
	router := &Router{server: s, api: s.api, mux: s.mux}
	for _, add := range append([]Routes{s.health.routes}, routes...) {
		add(router)
	}
	if err := s.serveContract(); err != nil {
		return nil, err
	}
	s.afterUse.start()
	return s, nil
}

// allowed are the methods that the path of a request takes.
func (s *Server) allowed(r *http.Request) string {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if s.mux.Match(chi.NewRouteContext(), method, path) {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, ", ")
}

func (c Config) withDefaults() Config {
	if c.Limits == (monitoring.Limits{}) {
		c.Limits = monitoring.DefaultLimits
	}
	if c.Timeout == 0 {
		c.Timeout = OperationTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	return c
}

// APIVersion is the version of the contract.
const APIVersion = "1.0.0"

func newAPI(mux chi.Router) huma.API {
	cfg := huma.DefaultConfig("Millrace", APIVersion)
	cfg.Info.Description = "Durable control plane: factories, artifacts, observability and monitoring. Errors are problem details (RFC 9457)."
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath, cfg.CreateHooks = "", "", "", nil
	cfg.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	cfg.RejectUnknownQueryParameters = true
	cfg.Servers = []*huma.Server{{URL: "/"}} // wherever the contract was fetched from
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		securityScheme: {Type: "http", Scheme: "bearer", Description: "A token of Millrace: mr_ and 43 characters. The scopes listed are those of the token."},
	}
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)
	cfg.Components.Schemas = schemas
	schemas.RegisterTypeAlias(reflect.TypeFor[exact.Decimal](), reflect.TypeFor[float64]())
	schemas.RegisterTypeAlias(reflect.TypeFor[factory.Millis](), reflect.TypeFor[time.Time]())
	schemas.RegisterTypeAlias(reflect.TypeFor[artifact.Duration](), reflect.TypeFor[string]())
	schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return humachi.New(mux, cfg)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// OpenAPI is the contract.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

// Close finishes what requests left behind, at most until ctx ends. The server
// must have stopped taking requests.
func (s *Server) Close(ctx context.Context) error {
	s.stop()
	return s.afterUse.close(ctx)
}
