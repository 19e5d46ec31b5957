package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the machine has none, as in small images

	"millrace/domain/exact"
	"millrace/domain/factory"
	"millrace/domain/report"
)

// ReportTime says for which zone's days reports are made, and when.
type ReportTime struct {
	Timezone string `name:"report-timezone" help:"IANA zone whose days are reported on." default:"Asia/Seoul" env:"MILLRACE_REPORT_TIMEZONE" placeholder:"ZONE"`
	Time     string `name:"report-time" help:"Local time at which the day before is reported on; half an hour after midnight leaves late data time to come." default:"00:30" env:"MILLRACE_REPORT_TIME" placeholder:"HH:MM"`
}

// Validate refuses a zone or a time that does not exist.
func (t ReportTime) Validate() error {
	var problems []error
	if t.Timezone == "" || t.Timezone == "Local" {
		problems = append(problems, errors.New("MILLRACE_REPORT_TIMEZONE: must be an IANA zone such as Asia/Seoul"))
	} else if _, err := time.LoadLocation(t.Timezone); err != nil {
		problems = append(problems, fmt.Errorf("MILLRACE_REPORT_TIMEZONE: %q must be an IANA zone such as Asia/Seoul", t.Timezone))
	}
	if _, _, err := t.Clock(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Clock is the local hour and minute at which reports are made.
func (t ReportTime) Clock() (hour, minute int, err error) {
	at, err := time.Parse("15:04", t.Time)
	if err != nil || at.Format("15:04") != t.Time {
		return 0, 0, fmt.Errorf("MILLRACE_REPORT_TIME: %q must be a time such as 00:30", t.Time)
	}
	return at.Hour(), at.Minute(), nil
}

// ReportPlace says where reports lie.
type ReportPlace struct {
	OutputPrefix string `name:"report-output-prefix" help:"Key prefix of the reports." default:"reports/daily" env:"MILLRACE_REPORT_OUTPUT_PREFIX" placeholder:"PREFIX"`
}

// Validate refuses a prefix that is none.
func (p ReportPlace) Validate() error {
	for level := range strings.SplitSeq(p.OutputPrefix, "/") {
		if level == "" || level == "." || level == ".." {
			return errors.New("MILLRACE_REPORT_OUTPUT_PREFIX: must be a key prefix such as reports/daily, without slashes at its ends")
		}
	}
	return nil
}

// Report has the rules of the daily report (factory.md, 7.3).
type Report struct {
	ReportTime
	ReportPlace
	FactoryIDs   []string      `name:"report-factory-ids" help:"Factories that are reported on, besides the cloud infrastructure; by default those of MILLRACE_FACTORY_IDS." env:"MILLRACE_REPORT_FACTORY_IDS" placeholder:"ID"`
	Datasets     []string      `name:"report-datasets" help:"Datasets of a factory that are aggregated." default:"factory_state,risk_score,infra_state" env:"MILLRACE_REPORT_DATASETS"`
	AuxDatasets  []string      `name:"report-aux-datasets" help:"Datasets of which only the last object of an hour is read." default:"state_snapshot" env:"MILLRACE_REPORT_AUX_DATASETS"`
	Language     string        `name:"report-language" help:"Language of reports and of the messages about them." enum:"ko,en" default:"ko" env:"MILLRACE_REPORT_LANGUAGE"`
	Testbeds     []string      `name:"report-testbeds" help:"Factories whose data are made up: reports never word them as real incidents." default:"factory-b,factory-c" env:"MILLRACE_REPORT_TESTBEDS" placeholder:"ID"`
	WritingLimit time.Duration `name:"report-writing-limit" help:"How long after a day's context was stored a model may write; then code alone writes the report." default:"45m" env:"MILLRACE_REPORT_WRITING_LIMIT"`
	PublicURL    string        `name:"public-url" help:"Address of the gateway as people reach it, for links in messages; without it messages name the objects." env:"MILLRACE_PUBLIC_URL" placeholder:"URL"`

	Model     ReportModel     `embed:"" prefix:"bedrock-"`
	Limits    ReportLimits    `embed:"" prefix:"report-"`
	Intervals ReportIntervals `embed:"" prefix:"report-"`
	Bounds    ReportBounds    `embed:"" prefix:"report-"`
}

// ReportModel says which model writes and how.
type ReportModel struct {
	ID          string        `name:"model-id" help:"Model or inference profile of Amazon Bedrock that words reports." default:"anthropic.claude-3-sonnet-20240229-v1:0" env:"MILLRACE_BEDROCK_MODEL_ID" placeholder:"ID"`
	MaxTokens   int           `help:"Greatest number of tokens of an answer." default:"3000" env:"MILLRACE_BEDROCK_MAX_TOKENS"`
	Timeout     time.Duration `name:"request-timeout" help:"How long one answer may take." default:"10m" env:"MILLRACE_BEDROCK_REQUEST_TIMEOUT"`
	Temperature string        `help:"Temperature, 0 to 1." default:"0.2" env:"MILLRACE_BEDROCK_TEMPERATURE"`
	Prices      string        `help:"US dollars per million tokens by model, as a JSON list: [{\"model\":\"name*\",\"input\":3,\"output\":15}]; without a price reports tell tokens only." env:"MILLRACE_BEDROCK_PRICES" placeholder:"JSON"`
}

// TokenPrices are the prices of models.
func (m ReportModel) TokenPrices() (report.TokenPrices, error) {
	prices, err := report.ParseTokenPrices(m.Prices)
	if err != nil {
		return nil, fmt.Errorf("MILLRACE_BEDROCK_PRICES: %w", err)
	}
	return prices, nil
}

// ReportLimits bound a report.
type ReportLimits struct {
	MaxContextEvents  int           `help:"Greatest number of events that a model is told of." default:"10" env:"MILLRACE_REPORT_MAX_CONTEXT_EVENTS"`
	MaxContextBytes   int           `help:"Greatest size of what a model is told." default:"120000" env:"MILLRACE_REPORT_MAX_CONTEXT_BYTES"`
	MaxHourlyEvents   int           `help:"Events that the summary of an hour lists." default:"5" env:"MILLRACE_REPORT_MAX_HOURLY_EVENTS"`
	EventMergeGap     time.Duration `help:"Gap up to which two events are one." default:"2m" env:"MILLRACE_REPORT_EVENT_MERGE_GAP"`
	GetConcurrency    int           `name:"s3-get-concurrency" help:"Objects that an hour reads side by side." default:"16" env:"MILLRACE_REPORT_S3_GET_CONCURRENCY"`
	MaxObjectsPerHour int           `help:"Objects that an hour reads at most; the report says how many were left out." default:"10000" env:"MILLRACE_REPORT_MAX_OBJECTS_PER_HOUR"`
}

// ReportIntervals are how often data are expected.
type ReportIntervals struct {
	FactoryState time.Duration `name:"factory-state-interval" help:"How often a factory sends factory_state." default:"3s" env:"MILLRACE_REPORT_FACTORY_STATE_INTERVAL"`
	RiskScore    time.Duration `name:"risk-score-interval" help:"How often a risk score is computed." default:"3s" env:"MILLRACE_REPORT_RISK_SCORE_INTERVAL"`
	InfraState   time.Duration `name:"infra-state-interval" help:"How often a factory sends infra_state." default:"20s" env:"MILLRACE_REPORT_INFRA_STATE_INTERVAL"`
}

// ReportBounds are what figures are judged by, all inclusive.
type ReportBounds struct {
	RiskWarningMax      string `name:"risk-warning-score-max" help:"Highest score that is a warning; 100 is safest." default:"84.99" env:"MILLRACE_REPORT_RISK_WARNING_SCORE_MAX"`
	RiskDangerMax       string `name:"risk-danger-score-max" help:"Highest score that is danger." default:"49.99" env:"MILLRACE_REPORT_RISK_DANGER_SCORE_MAX"`
	TemperatureWarning  string `name:"temperature-warning" help:"Degrees Celsius." default:"32" env:"MILLRACE_REPORT_TEMPERATURE_WARNING_C"`
	TemperatureCritical string `name:"temperature-critical" help:"Degrees Celsius." default:"38" env:"MILLRACE_REPORT_TEMPERATURE_CRITICAL_C"`
	HumidityWarning     string `name:"humidity-warning" help:"Percent." default:"70" env:"MILLRACE_REPORT_HUMIDITY_WARNING"`
	HumidityCritical    string `name:"humidity-critical" help:"Percent." default:"85" env:"MILLRACE_REPORT_HUMIDITY_CRITICAL"`
	AISpike             string `name:"ai-score-spike" help:"AI score from which it is a spike." default:"0.7" env:"MILLRACE_REPORT_AI_SCORE_SPIKE_THRESHOLD"`
}

// Bounds of the writing limit: less than a minute leaves no model time, and by
// the morning a report is to be there.
const (
	minWriting = time.Minute
	maxWriting = 12 * time.Hour
)

// Validate refuses settings that can't work, all of them in one error.
func (r Report) Validate() error {
	problems := []error{r.ReportTime.Validate(), r.ReportPlace.Validate()}
	for variable, ids := range map[string][]string{"MILLRACE_REPORT_FACTORY_IDS": r.FactoryIDs, "MILLRACE_REPORT_TESTBEDS": r.Testbeds} {
		for _, id := range ids {
			if err := factory.CheckFactoryID(id); err != nil {
				problems = append(problems, fmt.Errorf("%s: %q: %w", variable, id, err))
			}
		}
	}
	if r.WritingLimit < minWriting || r.WritingLimit > maxWriting {
		problems = append(problems, fmt.Errorf("MILLRACE_REPORT_WRITING_LIMIT: must be %s to %s", minWriting, maxWriting))
	}
	if r.PublicURL != "" {
		if u, err := url.Parse(r.PublicURL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			problems = append(problems, errors.New("MILLRACE_PUBLIC_URL: must be an address such as https://millrace.example.org"))
		}
	}
	if r.Model.ID == "" {
		problems = append(problems, errors.New("MILLRACE_BEDROCK_MODEL_ID: is required"))
	}
	if _, err := r.Model.TokenPrices(); err != nil {
		problems = append(problems, err)
	}
	if _, err := r.Settings(nil); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// settingOf is the variable of a setting as the rules of reports name it.
var settingOf = map[string]string{
	"timezone": "MILLRACE_REPORT_TIMEZONE", "output_prefix": "MILLRACE_REPORT_OUTPUT_PREFIX", "factory_ids": "MILLRACE_REPORT_FACTORY_IDS",
	"datasets": "MILLRACE_REPORT_DATASETS", "language": "MILLRACE_REPORT_LANGUAGE", "max_tokens": "MILLRACE_BEDROCK_MAX_TOKENS",
	"temperature": "MILLRACE_BEDROCK_TEMPERATURE", "max_context_events": "MILLRACE_REPORT_MAX_CONTEXT_EVENTS",
	"max_context_bytes": "MILLRACE_REPORT_MAX_CONTEXT_BYTES", "max_hourly_events": "MILLRACE_REPORT_MAX_HOURLY_EVENTS",
	"event_merge_gap": "MILLRACE_REPORT_EVENT_MERGE_GAP", "get_concurrency": "MILLRACE_REPORT_S3_GET_CONCURRENCY",
	"max_objects_per_hour": "MILLRACE_REPORT_MAX_OBJECTS_PER_HOUR", "factory_state_interval": "MILLRACE_REPORT_FACTORY_STATE_INTERVAL",
	"risk_score_interval": "MILLRACE_REPORT_RISK_SCORE_INTERVAL", "infra_state_interval": "MILLRACE_REPORT_INFRA_STATE_INTERVAL",
	"risk bounds":        "MILLRACE_REPORT_RISK_DANGER_SCORE_MAX, MILLRACE_REPORT_RISK_WARNING_SCORE_MAX",
	"temperature bounds": "MILLRACE_REPORT_TEMPERATURE_WARNING_C, MILLRACE_REPORT_TEMPERATURE_CRITICAL_C",
	"humidity bounds":    "MILLRACE_REPORT_HUMIDITY_WARNING, MILLRACE_REPORT_HUMIDITY_CRITICAL",
	"ai score bounds":    "MILLRACE_REPORT_AI_SCORE_SPIKE_THRESHOLD",
}

// Settings are the rules that the settings stand for; factories are those that
// are reported on where the settings name none.
func (r Report) Settings(factories []string) (report.Settings, error) {
	s := report.DefaultSettings()
	s.Timezone, s.OutputPrefix, s.Language = r.Timezone, r.OutputPrefix, report.Language(r.Language)
	s.FactoryIDs = factories
	if len(r.FactoryIDs) > 0 {
		s.FactoryIDs = r.FactoryIDs
	}
	s.Datasets, s.AuxDatasets, s.Profiles = r.Datasets, r.AuxDatasets, r.profiles(s.Profiles)
	s.ModelID, s.MaxTokens = r.Model.ID, r.Model.MaxTokens
	s.MaxContextEvents, s.MaxContextBytes, s.MaxHourlyEvents = r.Limits.MaxContextEvents, r.Limits.MaxContextBytes, r.Limits.MaxHourlyEvents
	s.EventMergeGap, s.GetConcurrency, s.MaxObjectsPerHour = r.Limits.EventMergeGap, r.Limits.GetConcurrency, r.Limits.MaxObjectsPerHour
	s.FactoryStateInterval, s.RiskScoreInterval, s.InfraStateInterval = r.Intervals.FactoryState, r.Intervals.RiskScore, r.Intervals.InfraState
	var problems []error
	for _, bound := range []struct {
		variable, text string
		into           *exact.Decimal
	}{
		{"MILLRACE_BEDROCK_TEMPERATURE", r.Model.Temperature, &s.Temperature},
		{"MILLRACE_REPORT_RISK_WARNING_SCORE_MAX", r.Bounds.RiskWarningMax, &s.RiskWarningMax},
		{"MILLRACE_REPORT_RISK_DANGER_SCORE_MAX", r.Bounds.RiskDangerMax, &s.RiskDangerMax},
		{"MILLRACE_REPORT_TEMPERATURE_WARNING_C", r.Bounds.TemperatureWarning, &s.TemperatureWarning},
		{"MILLRACE_REPORT_TEMPERATURE_CRITICAL_C", r.Bounds.TemperatureCritical, &s.TemperatureCritical},
		{"MILLRACE_REPORT_HUMIDITY_WARNING", r.Bounds.HumidityWarning, &s.HumidityWarning},
		{"MILLRACE_REPORT_HUMIDITY_CRITICAL", r.Bounds.HumidityCritical, &s.HumidityCritical},
		{"MILLRACE_REPORT_AI_SCORE_SPIKE_THRESHOLD", r.Bounds.AISpike, &s.AISpike},
	} {
		value, err := exact.Parse(bound.text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", bound.variable, err))
			continue
		}
		*bound.into = value
	}
	if len(problems) > 0 {
		return s, errors.Join(problems...)
	}
	return s, named(s.Check())
}

// named is an error of the rules with the variable that it is about.
func named(err error) error {
	var bad *report.InvalidError
	if !errors.As(err, &bad) {
		return err
	}
	variable, ok := settingOf[bad.Field]
	if !ok {
		return err
	}
	return fmt.Errorf("%s: %s", variable, bad.Rule)
}

// profiles are those that are known, with the testbeds as the settings have
// them.
func (r Report) profiles(known map[string]report.Profile) map[string]report.Profile {
	all := map[string]report.Profile{}
	for id, profile := range known {
		profile.InterpretationMode = report.ProductionEdge
		all[id] = profile
	}
	for _, id := range r.Testbeds {
		profile, ok := all[id]
		if !ok {
			profile = report.Profile{EnvironmentType: "unknown", InputModuleType: "unknown"}
		}
		profile.InterpretationMode = report.TestbedDummy
		all[id] = profile
	}
	return all
}
