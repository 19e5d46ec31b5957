package artifact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/domain/factory"
)

// Kind says how an artifact runs.
type Kind string

// The kinds.
const (
	// Script runs the primary file as a child process of a worker of its own.
	Script Kind = "script"
	// HTTP sends one request.
	HTTP Kind = "http"
	// IoTJob has the devices of factories run the primary file, in waves.
	IoTJob Kind = "iot-job"
)

// Kinds are the kinds that can run.
func Kinds() []Kind { return []Kind{Script, HTTP, IoTJob} }

// Limits bound a run.
type Limits struct {
	// Timeout ends the run; 1 s to 24 h, by default 10 minutes.
	Timeout Duration `json:"timeout,omitempty"`
	// OutputBytes bounds standard output and standard error each; by default 10 MiB.
	OutputBytes int64 `json:"output_bytes,omitempty"`
	// MemoryBytes bounds the address space of a script; by default 1 GiB.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
}

// Bounds of limits.
const (
	defaultTimeout = 10 * time.Minute
	maxTimeout     = 24 * time.Hour
	defaultOutput  = 10 << 20
	maxOutput      = 1 << 30
	defaultMemory  = 1 << 30
	minMemory      = 16 << 20
	maxMemory      = 64 << 30
)

func (l Limits) withDefaults() Limits {
	if l.Timeout == 0 {
		l.Timeout = Duration(defaultTimeout)
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = defaultOutput
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = defaultMemory
	}
	return l
}

func (l Limits) check() error {
	switch {
	case l.Timeout.Of() < time.Second || l.Timeout.Of() > maxTimeout:
		return invalid("spec.limits.timeout", "must be 1s to 24h")
	case l.OutputBytes < 1 || l.OutputBytes > maxOutput:
		return invalid("spec.limits.output_bytes", "must be 1 to 1 GiB")
	case l.MemoryBytes < minMemory || l.MemoryBytes > maxMemory:
		return invalid("spec.limits.memory_bytes", "must be 16 MiB to 64 GiB")
	}
	return nil
}

// Spec is how an artifact runs and who must approve it. Its canonical JSON is
// the file spec.json, which is part of what is approved.
type Spec struct {
	Kind   Kind            `json:"kind"`
	Args   json.RawMessage `json:"args,omitempty"`
	Limits Limits          `json:"limits,omitzero"`
	Policy Policy          `json:"policy"`
}

const maxArgs = 64 << 10

// ScriptArgs are the args of a script: what it gets on its command line. Its
// environment is empty.
type ScriptArgs struct {
	Args []string `json:"args,omitempty"`
}

// HTTPArgs are the args of a request. The primary file is its body; a rollback
// file is the body of the request that undoes it.
type HTTPArgs struct {
	Method      string `json:"method"`
	URL         string `json:"url"`
	ContentType string `json:"content_type,omitempty"`
	RollbackURL string `json:"rollback_url,omitempty"`
}

// decodeStrict reads JSON and refuses fields that are not known. It is
// deterministic, which the checker can't see in encoding/json.
//
//workflowcheck:ignore
func decodeStrict(field string, body []byte, into any) error {
	if len(body) == 0 {
		body = []byte("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return invalidf(field, "must be an object of the kind's args: %v", err)
	}
	return nil
}

// ScriptArgs reads the args of a script.
func (s Spec) ScriptArgs() (ScriptArgs, error) {
	var args ScriptArgs
	if err := decodeStrict("spec.args", s.Args, &args); err != nil {
		return ScriptArgs{}, err
	}
	for _, arg := range args.Args {
		if strings.ContainsRune(arg, 0) {
			return ScriptArgs{}, invalid("spec.args.args", "must not contain NUL")
		}
	}
	return args, nil
}

var methods = []string{"POST", "PUT", "PATCH", "DELETE"}

// HTTPArgs reads the args of a request.
func (s Spec) HTTPArgs() (HTTPArgs, error) {
	var args HTTPArgs
	if err := decodeStrict("spec.args", s.Args, &args); err != nil {
		return HTTPArgs{}, err
	}
	switch {
	case !slices.Contains(methods, args.Method):
		return HTTPArgs{}, invalidf("spec.args.method", "must be one of %s", strings.Join(methods, ", "))
	case !strings.HasPrefix(args.URL, "https://") && !strings.HasPrefix(args.URL, "http://"):
		return HTTPArgs{}, invalid("spec.args.url", "must be an http or https URL")
	}
	return args, nil
}

// withDefaults fills in what is left open, so that what is approved says it.
func (s Spec) withDefaults() Spec {
	s.Limits = s.Limits.withDefaults()
	if s.Kind != IoTJob {
		return s
	}
	if args, err := s.JobArgs(); err == nil {
		if body, err := Canonical(args); err == nil {
			s.Args = body
		}
	}
	return s
}

// CheckContent refuses files that the kind can't take, once their sizes are
// known.
func (s Spec) CheckContent(files []File) error {
	if s.Kind != IoTJob {
		return nil
	}
	return checkJobFiles(files)
}

func (s Spec) check() error {
	if len(s.Args) > maxArgs {
		return invalid("spec.args", "must be at most 64 KiB")
	}
	if err := s.Limits.check(); err != nil {
		return err
	}
	switch s.Kind {
	case Script:
		_, err := s.ScriptArgs()
		return err
	case HTTP:
		_, err := s.HTTPArgs()
		return err
	case IoTJob:
		_, err := s.JobArgs()
		return err
	}
	return invalidf("kind", "must be one of %v", Kinds())
}

// Canonical is the canonical JSON of a document: keys sorted, no white space,
// numbers as they were written. It is deterministic: encoding/json sorts the keys
// of maps; the checker only knows that it walks through them.
//
//workflowcheck:ignore
func Canonical(document any) ([]byte, error) {
	body, err := factory.EncodeJSON(document)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var fields any
	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	body, err = factory.EncodeJSON(fields)
	if err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return bytes.TrimSpace(body), nil
}
