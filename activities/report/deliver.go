package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/report"
	"millrace/platform/slack"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Scope is where messages about reports go, among the scopes that have webhooks
// and channels of their own.
const Scope = "reports"

// Messenger posts messages to people.
type Messenger interface {
	// Configured tells whether messages of a scope have somewhere to go.
	Configured(scope string) bool
	// Say makes one attempt at posting a text.
	Say(ctx context.Context, scope, text string) error
}

// Courier tells people of reports, of each result once.
type Courier struct {
	Store     storage.Store
	Messenger Messenger
	Language  report.Language
	// PublicURL is the address of the gateway as people reach it; without one
	// messages name the objects.
	PublicURL string
	Now       func() time.Time
	Logger    *slog.Logger
}

const (
	kindBusy        = "DeliveryBusy"
	kindUnavailable = "SlackUnavailable"
	// busyRetry is how long another run is given to tell people.
	busyRetry = time.Minute
)

// DeliverReports posts one message about a day. A marker in the bucket is claimed
// before and settled after, and knows what people were told: a run posts nothing
// where they know all its results, unless it is asked to. Nobody is told of a day
// that is not over unless that was asked for. A crash in between posts again: a message twice is better than none.
func (c Courier) DeliverReports(ctx context.Context, req workflows.DeliverRequest) (workflows.DeliverResult, error) {
	if !c.Messenger.Configured(Scope) {
		c.Logger.InfoContext(ctx, "nobody is told of reports: Slack is not configured", "report_date", req.Date, "status", req.Status)
		return workflows.DeliverResult{Outcome: workflows.DeliveryNotConfigured}, nil
	}
	day, err := report.ParseDay(req.Date, req.Timezone)
	if err != nil {
		return workflows.DeliverResult{}, failure(err)
	}
	if day.Window().End.After(c.Now()) && !req.Notify {
		return workflows.DeliverResult{Outcome: workflows.DeliveryNotOver, Reason: "the day is not over"}, nil
	}
	defer beating(ctx)()
	info := activity.GetInfo(ctx)
	results := digests(req.Results)
	id := info.WorkflowExecution.RunID + "/" + info.ActivityID
	claim, told, err := c.Store.ClaimDelivery(ctx, req.Date, id, results, c.Now(), req.Notify)
	switch {
	case err != nil:
		return workflows.DeliverResult{}, failure(err)
	case claim == storage.Told:
		return workflows.DeliverResult{Outcome: workflows.DeliveryDuplicate, Reason: "people were told of these results"}, nil
	case claim == storage.Busy:
		return workflows.DeliverResult{}, temporal.NewApplicationErrorWithOptions("another run tells people of "+req.Date, kindBusy,
			temporal.ApplicationErrorOptions{NextRetryDelay: busyRetry, Category: temporal.ApplicationErrorCategoryBenign})
	}
	result, err := c.send(ctx, c.text(req))
	if err != nil {
		return result, err
	}
	settled := storage.Delivery{ID: id, Status: result.Outcome, At: c.Now().UTC(), Reason: result.Reason, Told: told}
	if result.Outcome == workflows.DeliverySent || result.Outcome == workflows.DeliveryAmbiguous {
		settled.Told = map[string]string{}
		maps.Copy(settled.Told, told)
		maps.Copy(settled.Told, results)
	}
	if err := c.Store.SettleDelivery(ctx, req.Date, settled); err != nil {
		return result, failure(err)
	}
	c.Logger.InfoContext(ctx, "reports delivered", "report_date", req.Date, "outcome", result.Outcome, "reason", result.Reason)
	return result, nil
}

// digests are, by target, the SHA-256 of what a message says of a result that is
// news: how it ended and what it found, not where it lies.
func digests(results []workflows.TargetResult) map[string]string {
	all := make(map[string]string, len(results))
	for _, r := range results {
		body, err := json.Marshal([]any{r.Status, r.Stage, r.Generator, r.Verdict, r.Summary})
		if err != nil { // strings always marshal
			panic(err)
		}
		sum := sha256.Sum256(body)
		all[r.Target] = hex.EncodeToString(sum[:])
	}
	return all
}

// send posts a text. An attempt of which nobody knows whether it arrived is
// repeated once; the outcome says so.
func (c Courier) send(ctx context.Context, text string) (workflows.DeliverResult, error) {
	err := c.Messenger.Say(ctx, Scope, text)
	var failed *slack.Error
	if errors.As(err, &failed) && failed.Failure == slack.Unknown {
		if again := c.Messenger.Say(ctx, Scope, text); again == nil {
			return workflows.DeliverResult{Outcome: workflows.DeliverySent, Reason: "an attempt before may have arrived too"}, nil
		}
		return workflows.DeliverResult{Outcome: workflows.DeliveryAmbiguous, Reason: failed.Error()}, nil
	}
	switch {
	case err == nil:
		return workflows.DeliverResult{Outcome: workflows.DeliverySent}, nil
	case failed != nil && failed.Failure == slack.Rejected:
		return workflows.DeliverResult{Outcome: workflows.DeliveryFailed, Reason: failed.Error()}, nil
	case failed != nil && failed.Failure == slack.Limited:
		return workflows.DeliverResult{}, temporal.NewApplicationErrorWithOptions(failed.Error(), kindThrottled,
			temporal.ApplicationErrorOptions{NextRetryDelay: failed.RetryAfter, Category: temporal.ApplicationErrorCategoryBenign})
	}
	return workflows.DeliverResult{}, temporal.NewApplicationError(fmt.Sprintf("post message: %v", err), kindUnavailable)
}
