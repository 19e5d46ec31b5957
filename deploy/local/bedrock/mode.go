package bedrock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode is how a request is answered.
type Mode string

// The modes. Those up to Hang are failures of the service, the others of the model.
const (
	// OK words the findings.
	OK Mode = "ok"
	// Throttle, Timeout, Unavailable and the following answer with the service's errors.
	Throttle    Mode = "throttle"
	Timeout     Mode = "timeout"
	Unavailable Mode = "unavailable"
	Internal    Mode = "internal"
	NotReady    Mode = "not_ready"
	ModelError  Mode = "model_error"
	Quota       Mode = "quota"
	Invalid     Mode = "invalid"
	Denied      Mode = "denied"
	NotFound    Mode = "not_found"
	// BodyError is throttling whose type is in the body alone, Unnamed has no type, Garbage is no JSON.
	BodyError Mode = "body_error"
	Unnamed   Mode = "unnamed"
	Garbage   Mode = "garbage"
	// Hang never answers.
	Hang Mode = "hang"
	// Slow is ok after a second, or after delay_ms.
	Slow Mode = "slow"
	// Empty answers {}; Nonsense chats and calls no tool; Malformed calls it with another shape.
	Empty     Mode = "empty"
	Nonsense  Mode = "nonsense"
	Malformed Mode = "malformed"
	// Truncate stops amid the answer as for max_tokens.
	Truncate Mode = "truncate"
	// Lie changes one number, Foreign names another factory, Inject obeys an instruction that it finds
	// in the data, Secret lets out a credential, Omit leaves the last section out.
	Lie     Mode = "lie"
	Foreign Mode = "foreign"
	Inject  Mode = "inject"
	Secret  Mode = "secret"
	Omit    Mode = "omit"
)

var modes = []Mode{
	OK, Throttle, Timeout, Unavailable, Internal, NotReady, ModelError, Quota, Invalid, Denied, NotFound, BodyError, Unnamed, Garbage, Hang,
	Slow, Empty, Nonsense, Malformed, Truncate, Lie, Foreign, Inject, Secret, Omit,
}

const (
	slowBy   = time.Second
	maxDelay = 10 * time.Minute
)

// Behaviour is a mode and for how long.
type Behaviour struct {
	Mode Mode `json:"mode"`
	// Model is the one that it is for; empty is all that have none of their own.
	Model string `json:"model,omitempty"`
	// Count is for how many requests; after them it is ok. 0 is until it is changed.
	Count int `json:"count,omitempty"`
	// DelayMS is how long every answer takes, in milliseconds.
	DelayMS int64 `json:"delay_ms,omitempty"`
	// RetryAfter is a Retry-After header of errors, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
}

// ParseBehaviour reads a mode, or mode:count.
func ParseBehaviour(text string) (Behaviour, error) {
	if text == "" {
		return Behaviour{Mode: OK}, nil
	}
	name, times, counted := strings.Cut(text, ":")
	behave := Behaviour{Mode: Mode(name)}
	if counted {
		var err error
		if behave.Count, err = strconv.Atoi(times); err != nil || behave.Count < 1 {
			return Behaviour{}, fmt.Errorf("mode %q: the count must be a whole number from 1", text)
		}
	}
	return behave, behave.check()
}

func (b Behaviour) check() error {
	if !slices.Contains(modes, b.Mode) {
		return fmt.Errorf("mode must be one of %v", modes)
	}
	if b.Count < 0 || b.RetryAfter < 0 || b.DelayMS < 0 || b.Delay() > maxDelay {
		return fmt.Errorf("count, retry_after and delay_ms must not be negative, and the delay at most %s", maxDelay)
	}
	return nil
}

// Delay is how long an answer takes.
func (b Behaviour) Delay() time.Duration {
	if b.Mode == Slow && b.DelayMS == 0 {
		return slowBy
	}
	return time.Duration(b.DelayMS) * time.Millisecond
}

// faults are the service's errors: status, type and message.
var faults = map[Mode]struct {
	status     int
	code, text string
}{
	Throttle:    {http.StatusTooManyRequests, "ThrottlingException", "Too many requests, please wait before trying again."},
	Timeout:     {http.StatusRequestTimeout, "ModelTimeoutException", "The request took too long to process."},
	Unavailable: {http.StatusServiceUnavailable, "ServiceUnavailableException", "The service is not available now."},
	Internal:    {http.StatusInternalServerError, "InternalServerException", "An internal server error occurred."},
	NotReady:    {http.StatusTooManyRequests, "ModelNotReadyException", "The model is not ready yet."},
	ModelError:  {http.StatusFailedDependency, "ModelErrorException", "The model failed to process the request."},
	Quota:       {http.StatusBadRequest, "ServiceQuotaExceededException", "The account's quota is used up."},
	Invalid:     {http.StatusBadRequest, "ValidationException", "The request is not valid."},
	Denied:      {http.StatusForbidden, "AccessDeniedException", "You don't have access to the model."},
	NotFound:    {http.StatusNotFound, "ResourceNotFoundException", "There is no such model."},
}

// fault answers with a failure of the service, where the mode is one.
func (b Behaviour) fault(w http.ResponseWriter, r *http.Request) bool {
	if b.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(b.RetryAfter))
	}
	if f, ok := faults[b.Mode]; ok {
		fail(w, f.status, f.code, f.text)
		return true
	}
	switch b.Mode {
	case BodyError:
		write(w, http.StatusTooManyRequests, `{"__type":"ThrottlingException","message":"Too many requests."}`)
	case Unnamed:
		write(w, http.StatusTooManyRequests, `{"message":"Too many requests."}`)
	case Garbage:
		write(w, http.StatusInternalServerError, "<html><body>Bad Gateway</body></html>")
	case Empty:
		write(w, http.StatusOK, "{}")
	case Hang:
		<-r.Context().Done()
	default:
		return false
	}
	return true
}

// fail answers as the service does: its type in a header, the message in the body.
func fail(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("X-Amzn-Errortype", code)
	body, err := json.Marshal(map[string]string{"message": text})
	if err != nil { // a string always marshals
		panic(err)
	}
	write(w, status, string(body))
}

func write(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the client hung up when this fails: there is nobody to tell
}
