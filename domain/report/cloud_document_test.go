package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var updateCloud = flag.Bool("update-cloud", false, "write the golden documents of the cloud infrastructure anew")

// cloudPlain is a document as readable text.
func cloudPlain(d Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\nverdict: %s\n", d.Title, d.Verdict)
	table := func(t Table) {
		fmt.Fprintf(&b, "  [%s]\n", strings.Join(t.Columns, " | "))
		for _, row := range t.Rows {
			fmt.Fprintf(&b, "  %s\n", strings.Join(row, " | "))
		}
	}
	table(d.KeyFigures)
	for _, s := range d.Sections {
		fmt.Fprintf(&b, "\n## %s (%s)\n", s.Heading, s.ID)
		for _, t := range s.Tables {
			table(t)
		}
		for _, f := range s.Findings {
			fmt.Fprintf(&b, "- %s: %s\n", f.ID, f.Text)
		}
	}
	for _, c := range d.Charts {
		fmt.Fprintf(&b, "\nchart %s (%s): %d gaps, %d limits", c.ID, c.Title, len(c.Gaps), len(c.Limits))
		for _, line := range c.Lines {
			fmt.Fprintf(&b, ", %s %d points", line.Name, len(line.Points))
		}
	}
	return b.String() + "\n"
}

func goldenCloud(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateCloud {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path) //nolint:gosec // a name of this file
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestDocumentsAreAsRecorded(t *testing.T) {
	d := drilledCloudDay(t)
	for _, lang := range []Language{Korean, English} {
		goldenCloud(t, "cloud_day."+string(lang)+".golden.txt", cloudPlain(d.Document(lang)))
		goldenCloud(t, "cloud_empty."+string(lang)+".golden.txt", cloudPlain(MergeCloudDay(seoulDay(t, "2026-01-01"), DefaultSettings(), nil).Document(lang)))
	}
	require.Equal(t, cloudPlain(d.Document(Korean)), cloudPlain(d.Document("")), "Korean by default")
}

func TestEveryAnchorStandsInTheKeyFigures(t *testing.T) {
	for _, lang := range []Language{Korean, English} {
		doc := drilledCloudDay(t).Document(lang)
		var cells []string
		for _, row := range doc.KeyFigures.Rows {
			cells = append(cells, row[1])
		}
		names := map[string]string{}
		for _, anchor := range doc.Anchors {
			require.Contains(t, cells, anchor.Text, anchor.Name)
			names[anchor.Name] = anchor.Text
		}
		require.Equal(t, CloudTarget, names["target"])
		require.Equal(t, "2026-01-01", names["report_date"])
		require.Equal(t, "1430/1440", names["fast_count"])
		require.Equal(t, "284/288", names["slow_count"])
		require.Contains(t, names["ecs"], "ECS 2/2")
		require.Contains(t, names["nodes"], "2/2")
		require.Contains(t, names["argocd"], "ArgoCD 3/3")
		require.Contains(t, names["overall_status"], "danger")
	}
}

func TestEveryNumberOfTheFindingsIsInTheContext(t *testing.T) {
	d := drilledCloudDay(t)
	body, err := json.Marshal(d.Context(DefaultSettings()))
	require.NoError(t, err)
	for _, lang := range []Language{Korean, English} {
		known := map[string]bool{"5": true} // the 5 minutes are the method's
		for _, token := range readContext(lang, body).tokens {
			known[token.value] = true
		}
		ids := map[string]bool{}
		for _, section := range d.Document(lang).Sections {
			require.NotEmpty(t, section.Findings, section.ID)
			for _, finding := range section.Findings {
				require.False(t, ids[finding.ID], finding.ID)
				ids[finding.ID] = true
				if section.ID == "limits" {
					continue // it speaks of the method, not of the day
				}
				for _, token := range tokensOf(lang, finding.Text) {
					if token.kind == numberToken {
						require.True(t, known[token.value], "%s in %s: %s", token.value, finding.ID, finding.Text)
					}
				}
			}
		}
	}
}

func TestFindingsRepeatNoNames(t *testing.T) {
	for _, lang := range []Language{Korean, English} {
		for _, section := range drilledCloudDay(t).Document(lang).Sections {
			for _, finding := range section.Findings {
				for _, name := range []string{"factory-", "image-resize", "ignore", "millrace", "node-", "argocd-server"} {
					require.NotContains(t, strings.ToLower(finding.Text), name, finding.ID)
				}
			}
		}
	}
}

func TestTheContextIsBounded(t *testing.T) {
	day := seoulDay(t, "2026-01-01")
	settings := DefaultSettings()
	var hours []CloudHourSummary
	for i, hour := range day.Hours() {
		h := NewCloudHour(day, hour, settings)
		for minute := 0; minute < 60; minute += 6 {
			at := hour.Start.Add(time.Duration(minute) * time.Minute).Format("2006-01-02T15:04:05Z")
			var lambdas, reasons []string
			for n := range 60 {
				name := fmt.Sprintf("f-%d-%d-%d-%s", i, minute, n, strings.Repeat("x", 200))
				lambdas = append(lambdas, fmt.Sprintf(`{"name":%q,"errors_5m":1}`, name))
				reasons = append(reasons, fmt.Sprintf("%q", "lambda_errors_5m>0:"+name))
			}
			h.Add(CloudFast, fmt.Appendf(nil, `{"schema_version":"cloud-infra-status-v1","updated_at":%q,"fast":{"data_pipeline":{"status":"critical","reasons":[%s],"lambdas":[%s]},`+
				`"backend_runtime":{"status":%q}}}`, at, strings.Join(reasons, ","), strings.Join(lambdas, ","), []string{"warning", "normal", "critical", "normal", "normal"}[minute/6%5]))
		}
		summary := h.Summary()
		require.LessOrEqual(t, len(summary.Figures.Pipeline.Lambdas), maxCloudEntries)
		require.LessOrEqual(t, len(summary.Events), maxCloudHourEvents)
		hours = append(hours, summary)
	}
	d := MergeCloudDay(day, settings, hours)
	for _, limit := range []int{minContextBytes, 24 << 10, settings.MaxContextBytes} {
		settings.MaxContextBytes = limit
		context := d.Context(settings)
		body, err := json.Marshal(context)
		require.NoError(t, err)
		require.LessOrEqual(t, len(body), limit)
		require.LessOrEqual(t, len(context.Events), settings.MaxContextEvents)
		require.Equal(t, d.EventCount, int64(len(context.Events))+context.EventsOmitted)
		require.Positive(t, context.EventsOmitted)
		again, err := json.Marshal(d.Context(settings))
		require.NoError(t, err)
		require.Equal(t, string(body), string(again))
	}
}
