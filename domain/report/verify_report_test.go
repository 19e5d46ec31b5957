package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAnyDigitChangedInAFinishedReportIsCaught changes one digit of a report that
// was composed: unless the number that results is a fact as well, it is refused.
func TestAnyDigitChangedInAFinishedReportIsCaught(t *testing.T) {
	doc := sampleDocument()
	draft := verbatim(doc)
	origin := Origin{Model: modelName}
	whole := string(Compose(doc, &draft, origin).Markdown)
	facts := doc.text() + sampleContext
	var digits []int
	for i := range len(whole) {
		if whole[i] >= '0' && whole[i] <= '9' {
			digits = append(digits, i)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom(digits).Draw(t, "at")
		digit := '0' + (whole[at]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10
		changed := whole[:at] + string(digit) + whole[at+1:]
		if len(VerifyReport(doc, []byte(sampleContext), []byte(changed), origin, true, otherFactories)) > 0 {
			return
		}
		start, end := at, at+1
		for start > 0 && strings.IndexByte(" |\n(~", changed[start-1]) < 0 {
			start--
		}
		for end < len(changed) && strings.IndexByte(" |\n)~\\", changed[end]) < 0 {
			end++
		}
		number := digitsPattern.FindString(strings.TrimLeft(changed[start:end], `\`))
		if !strings.Contains(facts, strings.Trim(number, ",.")) {
			t.Fatalf("%q passed", changed[start:end])
		}
	})
}

func TestAReportOfAnotherDayOrTargetIsRefused(t *testing.T) {
	doc := sampleDocument()
	report := Compose(doc, nil, Origin{}).Markdown
	other := doc
	other.Target = "factory-c"
	require.NotEmpty(t, VerifyReport(other, []byte(sampleContext), report, Origin{}, false, otherFactories))
	other = doc
	other.Date = "2026-01-02"
	require.NotEmpty(t, VerifyReport(other, []byte(sampleContext), report, Origin{}, false, otherFactories))
	require.NotEmpty(t, VerifyReport(doc, []byte(sampleContext), nil, Origin{}, false, otherFactories))
	require.NotEmpty(t, VerifyReport(doc, []byte(sampleContext), report[:len(report)/2], Origin{}, false, otherFactories), "half a report")
}

func TestFiguresAreFoundWholeOnly(t *testing.T) {
	for _, c := range []struct {
		text, figure string
		want         bool
	}{
		{"점수 51.2점", "51.2", true},
		{"51.25", "51.2", false},
		{"151.2", "51.2", false},
		{"51.2.", "51.2", true},
		{"1,051.2", "51.2", false},
		{"| 0 | 98 |", "0", true},
		{"100", "0", false},
		{"factory-ab", "factory-a", false},
		{"factory-a의", "factory-a", true},
		{"", "0", false},
		{"x", "", true},
	} {
		require.Equal(t, c.want, containsFigure(c.text, c.figure), "%q in %q", c.figure, c.text)
	}
}

// TestTheTemplateOfAnythingPassesItsCheck has documents whose words were chosen by
// machines and by people who mean no good: the template report of each is checked
// and arrives, so that there is always a report.
func TestTheTemplateOfAnythingPassesItsCheck(t *testing.T) {
	fragments := []string{
		"ai-apps/web", "AKIAIOSFODNN7EXAMPLE", "token=abcdef123456", "password: ", "secret: ", "Bearer ", "abcdefghijklmnopqrstuvwxyz", "xoxb-1234567890-ab",
		"https://u:p@h/x", "https://hooks.slack.com/services/T/B/X", "<b>", "[x](y)", "![i](j)", "|", "`", "**", "__", "_", "~~", "\\", "# ", "- ", "1. ", "\n", "\r\n", "\u2028",
		"\u202e", "\u200b", "\x00", "\xff", "&amp;", "{}", "factory-b", "factory-zz", "factory-a", "2026-01-01", "2026-13-99T99:99:99Z", "99:99", "1,19", "1.2.3", "½", "５１",
		"가", "한글", " ", "  ", "-----BEGIN PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "(redacted)", "://", "@", "www.x.y", "---", "===", "> ", "51.2", "0", "%",
	}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 6).Draw(t, "parts"), rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))
	})
	rapid.Check(t, func(t *rapid.T) {
		doc := sampleDocument()
		doc.Language = rapid.SampledFrom([]Language{Korean, English}).Draw(t, "language")
		doc.Empty = rapid.Bool().Draw(t, "empty")
		doc.Sections[1].Tables[0].Rows = append(doc.Sections[1].Tables[0].Rows, rapid.SliceOfN(text, 0, 6).Draw(t, "row"))
		for i := range doc.Sections {
			for j := range rapid.IntRange(0, 2).Draw(t, "findings") {
				id := doc.Sections[i].ID + string('a'+rune(j))
				doc.Sections[i].Findings = append(doc.Sections[i].Findings, Finding{ID: id, Text: text.Draw(t, "finding")})
			}
		}
		doc.Anchors = append(doc.Anchors, Anchor{Name: "odd", Text: text.Draw(t, "anchor")})
		doc.Charts[0].Title, doc.Charts[0].Lines[0].Name = text.Draw(t, "title"), text.Draw(t, "line")
		report := Compose(doc, nil, Origin{})
		if violations := VerifyReport(doc, []byte(sampleContext), report.Markdown, Origin{}, false, otherFactories); len(violations) > 0 {
			t.Fatalf("%v in\n%s", violations, report.Markdown)
		}
		for _, live := range []string{"<b>", "<script", "\x00"} {
			if strings.Contains(string(report.HTML), live) {
				t.Fatalf("%q is live", live)
			}
		}
	})
}
