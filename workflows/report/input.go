package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
)

// StatusQuery answers with how far a run is: DailyStatus, TargetStatus or
// BackfillStatus.
const StatusQuery = "status"

// Types of errors that runs end with.
const (
	// ErrorInvalidInput is for input that can't be meant.
	ErrorInvalidInput = "InvalidInput"
	// ErrorUnsupportedTarget is for a target that is neither a factory of the
	// settings nor cloud-infra.
	ErrorUnsupportedTarget = "UnsupportedReportTarget"
	// ErrorTargetFailed ends a TargetReport that wrote no report; its details are
	// the TargetResult.
	ErrorTargetFailed = "TargetReportFailed"
	// ErrorNoDraft tells that a model brought nothing for as many requests as were
	// allowed.
	ErrorNoDraft = "NoUsableDraft"
	// ErrorAwaitedEnded tells that an awaited run ended without a result, such as
	// one that was terminated.
	ErrorAwaitedEnded = "AwaitedRunEnded"
)

// ReportType is the one type of report that there is.
const ReportType = "daily_factory_operations_draft"

// CloudInfraTarget is the target that is no factory.
const CloudInfraTarget = "cloud-infra"

func refusal(field, rule string) error {
	return temporal.NewNonRetryableApplicationError(field+": "+rule, ErrorInvalidInput, nil)
}

// DailyInput says what a DailyReport reports on; the zero value is the local day
// before the run's nominal time and all targets of the settings.
type DailyInput struct {
	// Date is a local day, yyyy-mm-dd.
	Date string `json:"report_date,omitempty"`
	// Timezone is an IANA zone.
	Timezone string `json:"timezone,omitempty"`
	// Factories are reported on together with cloud-infra; Targets are exactly what
	// is reported on. At most one of both is given.
	Factories []string `json:"factories,omitempty"`
	Targets   []string `json:"targets,omitempty"`
	// ReportType is ReportType or empty.
	ReportType string `json:"report_type,omitempty"`
	// Model overrides the worker's model.
	Model string `json:"model_id,omitempty"`
	// Force asks the model even where a draft of the same input is kept.
	Force bool `json:"force,omitempty"`
	// Notify tells people again of a day that they were told of; Quiet tells nobody.
	Notify bool `json:"notify,omitempty"`
	Quiet  bool `json:"quiet,omitempty"`
}

// UnmarshalJSON refuses fields that there are not: a mistyped one would have all
// targets of yesterday reported on.
func (in *DailyInput) UnmarshalJSON(body []byte) error {
	type plain DailyInput
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode((*plain)(in))
}

func (in DailyInput) check() error {
	switch {
	case in.ReportType != "" && in.ReportType != ReportType:
		return refusal("report_type", "must be "+ReportType)
	case len(in.Factories) > 0 && len(in.Targets) > 0:
		return refusal("targets", "must not be given together with factories")
	case in.Notify && in.Quiet:
		return refusal("notify", "must not be given together with quiet")
	}
	return checkDate(in.Date)
}

// targets are those that were asked for; none stands for those of the settings.
func (in DailyInput) targets() []string {
	if len(in.Factories) > 0 {
		return append(append([]string{}, in.Factories...), CloudInfraTarget)
	}
	return in.Targets
}

func checkDate(date string) error {
	if date == "" {
		return nil
	}
	if day, err := time.Parse(time.DateOnly, date); err != nil || day.Format(time.DateOnly) != date {
		return refusal("report_date", fmt.Sprintf("%q must be a day such as 2026-01-31", date))
	}
	return nil
}

// TargetInput says what a TargetReport reports on.
type TargetInput struct {
	Target string `json:"target"`
	// Date is the local day, yyyy-mm-dd.
	Date     string `json:"report_date"`
	Timezone string `json:"timezone,omitempty"`
	Model    string `json:"model_id,omitempty"`
	Force    bool   `json:"force,omitempty"`
	// MaxModelCalls bounds the requests to a model that may have to be paid for;
	// without it there may be three for each of two drafts.
	MaxModelCalls *int `json:"max_model_calls,omitempty"`
}

func (in TargetInput) check() error {
	switch {
	case in.Target == "":
		return refusal("target", "is required")
	case in.Date == "":
		return refusal("report_date", "is required")
	case in.MaxModelCalls != nil && *in.MaxModelCalls < 0:
		return refusal("max_model_calls", "must not be negative")
	}
	return checkDate(in.Date)
}

// callsLeft is how many requests to a model one more draft may take.
func (in TargetInput) callsLeft(made int) int {
	if in.MaxModelCalls == nil {
		return maxCallsOfDraft
	}
	return min(maxCallsOfDraft, *in.MaxModelCalls-made)
}
