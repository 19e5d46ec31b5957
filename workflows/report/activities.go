package report

import "time"

// Names of the activities.
const (
	PlanActivity          = "PlanReport"
	SummariseHourActivity = "SummariseReportHour"
	MergeDayActivity      = "MergeReportDay"
	DraftActivity         = "DraftReport"
	PublishActivity       = "PublishReport"
	DeliverActivity       = "DeliverReports"
	AwaitTargetActivity   = "AwaitTargetReport"
)

// PlanRequest asks what a run has to do. What is empty is taken from the
// worker's settings.
type PlanRequest struct {
	// At is the run's nominal time: without a date, the report is on the local day
	// before it.
	At time.Time `json:"at"`
	// Date is a local day, yyyy-mm-dd.
	Date     string `json:"report_date,omitempty"`
	Timezone string `json:"timezone,omitempty"`
	// Targets are factory ids and cloud-infra.
	Targets []string `json:"targets,omitempty"`
	// MakeUp also looks for targets of the day before that have no report.
	MakeUp bool `json:"make_up,omitempty"`
}

// Plan is what a run has to do, worked out by a worker that knows the settings
// and the time zones.
type Plan struct {
	Date     string `json:"report_date"`
	Timezone string `json:"timezone"`
	// Hours are the labels of the local day's hours, 00 to 23; a daylight saving day
	// may lack one.
	Hours []string `json:"hours"`
	// Targets are to be reported on, Unknown are those asked for that can't be.
	Targets []string `json:"targets"`
	Unknown []string `json:"unknown,omitempty"`
	// Missed are targets of the day before that have no report.
	Missed []TargetDate `json:"missed,omitempty"`
	// WritingSeconds is how long after the context was stored a model may write.
	WritingSeconds int64 `json:"writing_seconds"`
	// Previous is the local day before Date.
	Previous string `json:"previous,omitempty"`
}

// TargetDate names one report.
type TargetDate struct {
	Target string `json:"target"`
	Date   string `json:"report_date"`
}

// HourRequest asks to aggregate one local hour of a target.
type HourRequest struct {
	Target   string `json:"target"`
	Date     string `json:"report_date"`
	Timezone string `json:"timezone"`
	// Hour is the label of the hour, 00 to 23.
	Hour string `json:"hour"`
}

// Statuses of an hour.
const (
	HourSuccess = "success"
	HourEmpty   = "empty"
)

// HourResult is what an hour's aggregate came to.
type HourResult struct {
	Hour        string         `json:"hour"`
	Status      string         `json:"status"`
	SummaryKey  string         `json:"summary_key"`
	InputCounts map[string]int `json:"input_counts"`
	EventCount  int            `json:"event_count"`
}

// DayRequest asks to merge the hours of a target's day.
type DayRequest struct {
	Target   string `json:"target"`
	Date     string `json:"report_date"`
	Timezone string `json:"timezone"`
}

// DayResult is the merged day and the context of its report.
type DayResult struct {
	// Empty tells that nothing was collected all day.
	Empty      bool   `json:"empty,omitempty"`
	DailyKey   string `json:"daily_key"`
	ContextKey string `json:"context_key"`
	// ContextDigest is the SHA-256 of the context in hex.
	ContextDigest string `json:"context_digest"`
	// StoredAt is when the context was stored: the writing deadline counts from it.
	StoredAt time.Time `json:"stored_at"`
}

// DraftRequest asks a model to word the findings of a day.
type DraftRequest struct {
	Target     string `json:"target"`
	Date       string `json:"report_date"`
	Timezone   string `json:"timezone"`
	ContextKey string `json:"context_key"`
	DailyKey   string `json:"daily_key,omitempty"`
	// Model overrides the worker's model.
	Model string `json:"model_id,omitempty"`
	// Violations are what was wrong with the draft before this one.
	Violations []string `json:"violations,omitempty"`
	// Attempt is 1, or 2 for the corrected draft.
	Attempt int `json:"attempt"`
	// Force asks the model even where a draft of the same input is kept.
	Force bool `json:"force,omitempty"`
	// MaxCalls bounds the requests to the model that may have to be paid for.
	MaxCalls int `json:"max_calls,omitempty"`
}

// DraftResult is a draft and what it cost.
type DraftResult struct {
	DraftKey string `json:"draft_key"`
	// Valid tells that the draft passed every check; Violations say what did not.
	Valid      bool     `json:"valid"`
	Violations []string `json:"violations,omitempty"`
	// Cached tells that the draft was kept from before, so that no model was asked.
	Cached bool `json:"cached,omitempty"`
	// Calls is how many requests to the model may have to be paid for, those without
	// an answer that could be used among them.
	Calls int `json:"model_calls,omitempty"`
	// Unusable says why there is no draft after as many requests as were allowed.
	Unusable     string `json:"unusable,omitempty"`
	InputTokens  int64  `json:"input_tokens,omitempty"`
	OutputTokens int64  `json:"output_tokens,omitempty"`
	Cost         string `json:"cost_usd,omitempty"`
}

// PublishRequest asks to write the report from a draft, or from the template
// where there is none.
type PublishRequest struct {
	Target     string `json:"target"`
	Date       string `json:"report_date"`
	Timezone   string `json:"timezone"`
	DailyKey   string `json:"daily_key"`
	ContextKey string `json:"context_key"`
	// DraftKey is empty for the template report; Reason then tells why.
	DraftKey string `json:"draft_key,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Model    string `json:"model_id,omitempty"`
	// Tokens and cost are those of all drafts of this run.
	InputTokens  int64  `json:"input_tokens,omitempty"`
	OutputTokens int64  `json:"output_tokens,omitempty"`
	Cost         string `json:"cost_usd,omitempty"`
	// ModelCalls is how many requests to the model may have to be paid for, LostCalls
	// how many of them brought no answer that tells its tokens.
	ModelCalls int `json:"model_calls,omitempty"`
	LostCalls  int `json:"lost_calls,omitempty"`
	// Violations are what was wrong with the drafts that were refused.
	Violations []string `json:"violations,omitempty"`
}

// Generators of a report's words.
const (
	GeneratorModel    = "model"
	GeneratorTemplate = "template"
)

// PublishResult is a report that was written.
type PublishResult struct {
	Generator   string `json:"generator"`
	ReportKey   string `json:"report_key"`
	HTMLKey     string `json:"html_key"`
	MetadataKey string `json:"metadata_key"`
	Verdict     string `json:"verdict"`
	// Summary is a few lines for a message about the day: lowest score, collection,
	// events.
	Summary []string `json:"summary,omitempty"`
	// Reason tells why a report is a template.
	Reason string `json:"reason,omitempty"`
}

// DeliverRequest asks to tell people of a day's reports.
type DeliverRequest struct {
	Date     string         `json:"report_date"`
	Timezone string         `json:"timezone"`
	Status   string         `json:"status"`
	Results  []TargetResult `json:"results"`
	// Notify tells again of a day that was told of.
	Notify bool `json:"notify,omitempty"`
}

// Outcomes of a delivery.
const (
	DeliverySent          = "sent"
	DeliveryDuplicate     = "duplicate"
	DeliveryNotConfigured = "not_configured"
	DeliveryNotOver       = "not_over"
	DeliveryAmbiguous     = "ambiguous"
	DeliveryFailed        = "failed"
)

// DeliverResult is what became of a delivery.
type DeliverResult struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// AwaitRequest asks to wait for a report that another run is already making.
type AwaitRequest struct {
	Target     string `json:"target"`
	Date       string `json:"report_date"`
	WorkflowID string `json:"workflow_id"`
}

// Statuses of a target's report.
const (
	TargetSuccess          = "success"
	TargetInsufficientData = "insufficient_data"
	TargetFailed           = "failed"
)

// TargetResult is how a target's report ended.
type TargetResult struct {
	// Target is a factory id or cloud-infra; named as in the original's results.
	Target string `json:"factory_id"`
	Date   string `json:"report_date,omitempty"`
	Status string `json:"status"`
	// Stage is where it failed, Error why.
	Stage string `json:"stage,omitempty"`
	Error string `json:"error,omitempty"`
	// Reason says why there is less than a full report: no data, or no model.
	Reason      string   `json:"reason,omitempty"`
	ContextKey  string   `json:"context_key,omitempty"`
	ReportKey   string   `json:"report_key,omitempty"`
	HTMLKey     string   `json:"html_key,omitempty"`
	MetadataKey string   `json:"metadata_key,omitempty"`
	Generator   string   `json:"generator,omitempty"`
	Verdict     string   `json:"verdict,omitempty"`
	Summary     []string `json:"summary,omitempty"`
	// ModelCalls is how many requests to a model may have to be paid for: all but
	// those that were refused or throttled. LostCalls are those among them of which
	// no tokens are known.
	ModelCalls   int    `json:"model_calls,omitempty"`
	LostCalls    int    `json:"lost_calls,omitempty"`
	InputTokens  int64  `json:"input_tokens,omitempty"`
	OutputTokens int64  `json:"output_tokens,omitempty"`
	Cost         string `json:"cost_usd,omitempty"`
	// Awaited tells that another run made the report and this one waited for it.
	Awaited bool `json:"awaited,omitempty"`
}
