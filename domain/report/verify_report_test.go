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
