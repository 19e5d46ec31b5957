package report

import (
	"fmt"
	"net/url"
	"strings"

	"millrace/domain/report"
	workflows "millrace/workflows/report"
)

// words are what a message says in one language.
type words struct {
	title, complete, partial  string
	normal, warning, danger   string
	noData, failed, template  string
	link, untold, cloudTarget string
}

var wordsIn = map[report.Language]words{
	report.Korean: {
		title: "일일 운영 리포트", complete: "완료", partial: "일부 실패", normal: "정상", warning: "주의", danger: "위험",
		noData: "데이터 없음", failed: "실패", template: "템플릿 리포트", link: "리포트 보기", untold: "외 %d개", cloudTarget: "Cloud Infra",
	},
	report.English: {
		title: "Daily operations report", complete: "complete", partial: "incomplete", normal: "normal", warning: "warning", danger: "danger",
		noData: "no data", failed: "failed", template: "template report", link: "read", untold: "and %d more", cloudTarget: "Cloud Infra",
	},
}

const (
	// maxLines bounds the targets that a message lists, and maxSummary the lines about
	// one: Slack cuts messages of 40,000 characters, and people stop reading earlier.
	maxLines   = 60
	maxSummary = 4
	maxReason  = 300
)

// slackText is text in which nothing means anything to Slack (Slack, "Formatting
// text: escaping").
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "*", "∗", "`", "'")

// text is the message about a day.
func (c Courier) text(req workflows.DeliverRequest) string {
	w := wordsIn[c.Language]
	state := w.complete
	if req.Status != workflows.DayCompleted {
		state = w.partial
	}
	lines := []string{fmt.Sprintf("*%s %s* (%s) · %s", w.title, req.Date, slackText.Replace(req.Timezone), state)}
	for i, r := range req.Results {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf(w.untold, len(req.Results)-maxLines))
			break
		}
		lines = append(lines, c.target(w, req.Date, r)...)
	}
	return strings.Join(lines, "\n")
}

func (c Courier) target(w words, date string, r workflows.TargetResult) []string {
	mark, verdict := w.verdict(r)
	name := r.Target
	if name == report.CloudTarget {
		name = w.cloudTarget
	}
	head := fmt.Sprintf("%s *%s* %s", mark, slackText.Replace(name), verdict)
	if r.Generator == workflows.GeneratorTemplate && r.Status == workflows.TargetSuccess {
		head += " (" + w.template + ")"
	}
	if r.ReportKey != "" {
		head += " · " + c.link(w, date, r)
	}
	lines := []string{head}
	for _, summary := range r.Summary[:min(len(r.Summary), maxSummary)] {
		lines = append(lines, "      "+slackText.Replace(summary))
	}
	return lines
}

// verdict is a mark and a word for how a target's day was.
func (w words) verdict(r workflows.TargetResult) (mark, text string) {
	switch {
	case r.Status == workflows.TargetFailed:
		return "⚪", fmt.Sprintf("%s (%s): %s", w.failed, r.Stage, slackText.Replace(cut(r.Error)))
	case r.Status == workflows.TargetInsufficientData:
		return "⚪", w.noData
	case r.Verdict == string(report.Danger):
		return "🔴", w.danger
	case r.Verdict == string(report.Warning):
		return "🟡", w.warning
	}
	return "🟢", w.normal
}

// cut bounds a text at a whole character.
func cut(text string) string {
	runes := []rune(text)
	if len(runes) <= maxReason {
		return text
	}
	return string(runes[:maxReason]) + "…"
}

// link leads to the report: at the gateway, or else by its key.
func (c Courier) link(w words, date string, r workflows.TargetResult) string {
	if c.PublicURL == "" {
		return "`" + r.ReportKey + "`"
	}
	return fmt.Sprintf("<%s/v1/reports/%s/%s?format=html|%s>", strings.TrimSuffix(c.PublicURL, "/"), url.PathEscape(date), url.PathEscape(r.Target), w.link)
}
