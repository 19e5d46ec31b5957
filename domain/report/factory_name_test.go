package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesTellNoCredentials(t *testing.T) {
	for _, name := range []string{
		"password=hunter2secret AKIAIOSFODNN7EXAMPLE", "worker password=hunter2secret", "x_AKIAIOSFODNN7EXAMPLE_y", "https://user:pass@host/x",
		"db_password: hunter2secret", "node_ghp_abcdefghijklmnopqrstuvwxyz0123456789", "Bearer abcdefghijklmnopqrstuvwxyz",
		"a_xoxb-123456789012-abcdef", "SECRET_ACCESS_KEY=abcdefghij0123456789", strings.Repeat("n", 70) + " password=hunter2secret",
	} {
		safe := safeName(name)
		for _, part := range []string{"hunter2", "AKIA", "abcdef", "user", "pass@"} {
			require.NotContains(t, safe, part, name)
		}
		require.True(t, strings.Contains(safe, "[redacted") || len(safe) == maxName, safe)
		require.False(t, hasSecret(safe), safe)
		require.NotContains(t, cloudName(name), "hunter2")
	}
	require.Equal(t, "[redacted]_[redacted]", safeName("password=hunter2secret AKIAIOSFODNN7EXAMPLE"))
	require.Equal(t, "ai-apps/edge-agent-7d9f", workloadName("ai-apps", "edge-agent-7d9f"))
}

// TestADayWithAnyNamesCanBeWorded has machines named so that a check would refuse
// their findings.
func TestADayWithAnyNamesCanBeWorded(t *testing.T) {
	for _, name := range []string{
		"javascript:alert(1)", "www.shop", "WWW.shop", "https://x", "https_:", "data:text/html", "mailto:a", "two", "ftp:", "a&lt;b", "1. x", "[redacted]",
		"password=hunter2secret", "# title", "|", "factory_state", "factory-c", "B공장", strings.Repeat("production-workloads-", 3) + "api",
	} {
		var names []NameMinutes
		for i := range 5 {
			names = append(names, NameMinutes{Name: workloadName(strings.Repeat("n", i), name)})
		}
		for _, lang := range []Language{Korean, English} {
			text := say("워크로드 재시작은 3회, 비정상 워크로드가 있던 시간은 4분이었습니다%[1]s.", "Workload restarts: 3; workloads were unhealthy for 4 minutes%[1]s.",
				inBrackets(firstNames(names))).in(lang)
			doc := Document{
				Target: "factory-b", Date: "2026-01-01", Timezone: "Asia/Seoul", Language: lang,
				Sections: []Section{{ID: "s", Heading: "S", Findings: []Finding{{"f", text}, {"g", say("온도와 습도는 측정되지 않았습니다. 이상 소음은 0건 감지되었습니다. 추가로 확인할 항목이 없습니다. 인프라 상태가 수집되지 않았습니다. 데이터 공백은 없었습니다.", "There were no gaps in the data.").in(lang)}}}},
			}
			doc.Sections[0].Findings[0].Text = clean(text)
			require.Empty(t, Verify(doc, nil, verbatim(doc), otherFactories), text)
		}
	}
}
