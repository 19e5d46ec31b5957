// Package secret reads secrets by reference, so that no secret stands in a
// setting, a log or a workflow's history: env:NAME, file:PATH or aws-secret:ID
// (a name or an ARN in AWS Secrets Manager).
package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Reference says where a secret lies. It is no secret itself.
type Reference string

const (
	schemeEnv  = "env:"
	schemeFile = "file:"
	schemeAWS  = "aws-secret:"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Check refuses a reference that names no place. Its error repeats nothing of
// the text: a secret may have been given by mistake.
func (r Reference) Check() error {
	text := string(r)
	switch {
	case strings.HasPrefix(text, schemeEnv) && variableName.MatchString(text[len(schemeEnv):]):
	case strings.HasPrefix(text, schemeFile) && len(text) > len(schemeFile):
	case strings.HasPrefix(text, schemeAWS) && len(text) > len(schemeAWS):
	default:
		return errors.New("must be env:NAME, file:PATH or aws-secret:ID, not the secret itself")
	}
	return nil
}

// SecretsManager is the part of the AWS client that is needed.
type SecretsManager interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// maxSecret bounds a secret's length; Secrets Manager has the same limit.
const maxSecret = 64 * 1024

// Reader reads secrets and remembers each for a while, so that a rotated secret
// is noticed and a busy sender costs no calls.
type Reader struct {
	// AWS may be nil when no reference is an AWS one.
	AWS SecretsManager
	// Keep is how long a secret is remembered; 0 remembers nothing.
	Keep time.Duration
	Now  func() time.Time

	mu    sync.Mutex
	known map[Reference]remembered
}

type remembered struct {
	value string
	until time.Time
}

// Read is the secret behind a reference, without surrounding white space. An
// empty secret is an error. Errors name the reference, never the secret.
func (r *Reader) Read(ctx context.Context, ref Reference) (string, error) {
	if value, ok := r.remembered(ref); ok {
		return value, nil
	}
	value, err := r.read(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("read secret %s: %w", ref, err)
	}
	if value = strings.TrimSpace(value); value == "" {
		return "", fmt.Errorf("read secret %s: it is empty", ref)
	}
	r.remember(ref, value)
	return value, nil
}

// Forget drops what is remembered of a reference, because the secret was
// refused: it may have been rotated.
func (r *Reader) Forget(ref Reference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, ref)
}

func (r *Reader) remembered(ref Reference) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[ref]
	if !ok || !r.Now().Before(known.until) {
		return "", false
	}
	return known.value, true
}

func (r *Reader) remember(ref Reference, value string) {
	if r.Keep <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[Reference]remembered{}
	}
	r.known[ref] = remembered{value: value, until: r.Now().Add(r.Keep)}
}

func (r *Reader) read(ctx context.Context, ref Reference) (string, error) {
	if err := ref.Check(); err != nil {
		return "", err
	}
	text := string(ref)
	switch {
	case strings.HasPrefix(text, schemeEnv):
		return os.Getenv(text[len(schemeEnv):]), nil
	case strings.HasPrefix(text, schemeFile):
		return readFile(text[len(schemeFile):])
	}
	if r.AWS == nil {
		return "", errors.New("AWS Secrets Manager is not set up")
	}
	id := text[len(schemeAWS):]
	out, err := r.AWS.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if err != nil {
		return "", err
	}
	if out.SecretString == nil {
		return "", errors.New("it is binary")
	}
	return *out.SecretString, nil
}

func readFile(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(file, maxSecret))
	return string(body), err
}
