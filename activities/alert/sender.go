package alert

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millrace/domain/alert"
	"millrace/platform/secret"
	"millrace/platform/slack"
	storage "millrace/storage/alert"
	workflows "millrace/workflows/alert"
)

// incidentFor is how long after its last alert an incident's message is still
// edited in place: four cooldowns of a warning.
const incidentFor = time.Hour

// Slack delivers messages by incoming webhook, or as a bot where a token is
// set.
type Slack struct {
	Client  slack.Client
	Secrets *secret.Reader
	// Webhook is where alerts of scopes without a webhook of their own go.
	Webhook  secret.Reference
	Webhooks map[string]secret.Reference
	// Token switches bot mode on; Channel and Channels say where to post.
	Token    secret.Reference
	Channel  string
	Channels map[string]string
	Language alert.Language
}

// Configured tells whether alerts of a scope have somewhere to go.
func (s Slack) Configured(scope string) bool {
	return s.bot(scope) != "" || s.reference(scope) != ""
}

// Send delivers an alert. In bot mode an incident that is still going on has its
// message edited and the news added to its thread.
func (s Slack) Send(ctx context.Context, a alert.Alert, incident storage.Incident) (storage.Incident, error) {
	text := alert.Text(a, s.Language)
	channel := s.bot(a.Scope)
	if channel == "" {
		return storage.Incident{}, s.webhook(ctx, a.Scope, text)
	}
	if incident.TS != "" {
		err := s.update(ctx, incident, text, alert.AgainText(a, s.Language))
		if !gone(err) {
			return incident, err
		}
	}
	return s.post(ctx, channel, "", text)
}

// Recover delivers the notice that an alert is over.
func (s Slack) Recover(ctx context.Context, req workflows.RecoveryRequest) error {
	text := alert.RecoveryText(req.Alert, req.At, s.Language)
	channel := s.bot(req.Alert.Scope)
	if channel == "" {
		return s.webhook(ctx, req.Alert.Scope, text)
	}
	if req.Incident.TS != "" {
		if err := s.update(ctx, storage.Incident(req.Incident), text, text); !gone(err) {
			return err
		}
	}
	_, err := s.post(ctx, channel, "", text)
	return err
}

// scopeKey finds what is set for a scope; app.* stands for all applications.
func scopeKey[V any](scopes map[string]V, scope string, fallback V) V {
	if v, ok := scopes[scope]; ok {
		return v
	}
	if _, app := alert.AppOf(scope); app {
		if v, ok := scopes[alert.AppScope("*")]; ok {
			return v
		}
	}
	return fallback
}

func (s Slack) reference(scope string) secret.Reference {
	return scopeKey(s.Webhooks, scope, s.Webhook)
}

// bot is the channel of a scope in bot mode, "" otherwise.
func (s Slack) bot(scope string) string {
	if s.Token == "" {
		return ""
	}
	return scopeKey(s.Channels, scope, s.Channel)
}

func (s Slack) webhook(ctx context.Context, scope, text string) error {
	return s.withSecret(ctx, s.reference(scope), func(value string) error {
		return s.Client.Webhook(ctx, webhookURL(value, scope), text)
	})
}

// webhookURL is the URL in a secret: plain, or in the field url or webhook_url
// of a JSON object. {scope} in it stands for the alert's scope.
func webhookURL(value, scope string) string {
	if strings.HasPrefix(value, "{\"") || strings.HasPrefix(value, "{ ") || strings.HasPrefix(value, "{\n") {
		var fields struct {
			URL        string `json:"url"`
			WebhookURL string `json:"webhook_url"`
		}
		if json.Unmarshal([]byte(value), &fields) == nil {
			value = fields.URL
			if value == "" {
				value = fields.WebhookURL
			}
		}
	}
	return strings.ReplaceAll(strings.TrimSpace(value), "{scope}", url.PathEscape(scope))
}

func (s Slack) post(ctx context.Context, channel, thread, text string) (storage.Incident, error) {
	var posted slack.Message
	err := s.withSecret(ctx, s.Token, func(token string) (err error) {
		posted, err = s.Client.Post(ctx, token, channel, thread, text)
		return err
	})
	return storage.Incident(posted), err
}

// update edits an incident's message and adds a reply to its thread. Editing
// again changes nothing, so that a retry doubles at most the reply.
func (s Slack) update(ctx context.Context, incident storage.Incident, text, reply string) error {
	err := s.withSecret(ctx, s.Token, func(token string) error {
		_, err := s.Client.Edit(ctx, token, slack.Message(incident), text)
		return err
	})
	if err != nil {
		return err
	}
	_, err = s.post(ctx, incident.Channel, incident.TS, reply)
	return err
}

// withSecret uses a secret. One that is refused is read anew, once: it may have
// been rotated since it was remembered.
func (s Slack) withSecret(ctx context.Context, ref secret.Reference, use func(string) error) error {
	value, err := s.Secrets.Read(ctx, ref)
	if err != nil {
		return err
	}
	err = use(value)
	if !refusedSecret(err) {
		return err
	}
	s.Secrets.Forget(ref)
	fresh, readErr := s.Secrets.Read(ctx, ref)
	if readErr != nil || fresh == value {
		return err
	}
	return use(fresh)
}

func refusedSecret(err error) bool {
	var e *slack.Error
	if !errors.As(err, &e) || e.Failure != slack.Rejected {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return e.Code == "invalid_auth" || e.Code == "token_revoked" || e.Code == "token_expired"
}

func gone(err error) bool {
	var e *slack.Error
	return errors.As(err, &e) && slack.CodeGone[e.Code]
}
