package alert

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/factory"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text+"\n")
}

func first(t *testing.T, d Decision, err error) Alert {
	t.Helper()
	require.NoError(t, err)
	require.NotEmpty(t, d.Alerts)
	return d.Alerts[0].Trimmed()
}

func TestMessagesInBothLanguages(t *testing.T) {
	outage := healthy()
	outage.NodesReady, outage.PodsReady = 0, 0
	alerts := map[string]Alert{
		"factory_outage":   first(t, Factory(judged(celsius("36"), outage, 10)), nil),
		"factory_pipeline": first(t, Factory(judged(celsius("24"), healthy(), 61)), nil),
	}
	d, err := Fast(fastJSON(normalRuntime+`,"data_pipeline":{"status":"warning","lambdas":[{"name":"processor","errors_5m":1},{"name":"graph","errors_5m":2}]}`), "")
	alerts["fast_lambda_errors"] = first(t, d, err)
	d, err = Fast(fastJSON(normalPipeline+`,"backend_runtime":{"status":"warning","reasons":["ecs_running_count<desired_count"]}`), "")
	alerts["fast_backend"] = first(t, d, err)
	d, err = Slow(slowJSON(normalStorage+`,"eks_management":{"status":"critical","cluster":{"name":"hub","status":"FAILED"}}`), "")
	alerts["slow_cluster"] = first(t, d, err)
	d, err = Slow(slowJSON(normalEKS+","+normalStorage+`,"errors":[{"collector":"kubernetes_api","error":"HTTP 401 Unauthorized <x> & \n fake: line"}]`), "")
	alerts["slow_unauthorized"] = first(t, d, err)
	alerts["app_budget"] = Alert{
		Scope: "app.shop", SourceType: SourceApp, Severity: Warning, Reason: "daily_cost", Status: "80", SourceUpdatedAt: noon,
		Title: "Application shop spent 80 % of its daily budget.", Summary: "8.00 of 10.00 USD",
	}
	for name, a := range alerts {
		for _, language := range Languages {
			t.Run(name+"_"+string(language), func(t *testing.T) { golden(t, name+"_"+string(language)+".golden.txt", Text(a, language)) })
		}
	}
	golden(t, "recovery_ko.golden.txt", RecoveryText(alerts["factory_outage"], noon, Korean))
	golden(t, "recovery_en.golden.txt", RecoveryText(alerts["factory_outage"], noon, English))
	golden(t, "again_en.golden.txt", AgainText(alerts["factory_outage"], English))
}

func TestTheLayoutOfADangerMessage(t *testing.T) {
	outage := healthy()
	outage.NodesReady = 0
	text := Text(first(t, Factory(judged(celsius("24"), outage, 10)), nil), Korean)
	last := -1
	for _, part := range []string{
		"━━━━━━━━━━━━━━━━━━━━━━\nAEGIS Alert | 위험 알림\n", "\n무엇이 문제인가요?\nfactory-c에서 위험(DANGER) 조건이 감지되었습니다.\n",
		"\n현재 상태\n- 심각도: 위험(DANGER)\n- 공장/대상: factory-c\n- 수집/스냅샷: 공장 상태 스냅샷\n- 상태: normal\n- 위험 점수: 0\n",
		"\n왜 발생했나요?\n- 원인: nodes_all_not_ready\n", "\n주요 원인\n1. 항목: node_status\n   원인: nodes_all_not_ready\n   현재 값: 0/2\n",
		"\n위험 판단 기준\n", "\n확인할 데이터\nprocessed/factory-c/", "\n중복 알림 제어\n동일 조건은 cooldown 동안 재전송되지 않습니다.\n",
	} {
		at := strings.Index(text, part)
		require.Greater(t, at, last, part)
		last = at
	}
	require.NotContains(t, text, "오류 상세", "empty blocks are left out")
	require.True(t, strings.HasSuffix(text, rule))
}

func TestValuesCannotForgeTheMessage(t *testing.T) {
	value := "<!channel> & <https://evil|click>\n확인할 데이터\nfake"
	a := Alert{Scope: "factory-a", SourceType: SourceFactory, Severity: Danger, Reason: "x", Status: value, SourceUpdatedAt: noon, Details: Details{
		Causes: []Cause{{Field: value, Reason: value, Value: factory.Value{Text: &value}}},
		Gates:  []Gate{{Name: value}}, Errors: []CollectorError{{Source: value, Message: value}}, Facts: []Fact{{TopicALB, value, value}},
	}}
	text := Text(a, Korean)
	require.NotContains(t, text, "<")
	require.NotContains(t, text, "\nfake")
	require.Contains(t, text, "&lt;!channel&gt; &amp;")
}

func TestAMessageNeverExceedsSlacksLimit(t *testing.T) {
	long := strings.Repeat("<", 100_000)
	a := Alert{Scope: "factory-a", SourceType: SourceFactory, Severity: Danger, Reason: long, Status: long, Title: long, Summary: long, SourceKey: "processed/x"}
	for range 500 {
		a.Details.Facts = append(a.Details.Facts, Fact{Topic(long), long, long}, Fact{TopicALB, long, long})
	}
	text := Text(a, English)
	require.LessOrEqual(t, len([]rune(text)), MaxMessage)
	require.True(t, strings.HasSuffix(text, rule))
	require.Contains(t, text, "processed/x", "where to look survives the cut")
}
