package alert

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAConditionIsOverOnlyWhenNothingTellsOfItAnyMore(t *testing.T) {
	factoryOf := func(pipeline, risk string) Decision {
		d, err := ParseFactory(fmt.Appendf(nil, `{"factory_id":"factory-a","updated_at":"2026-06-02T02:00:00Z","pipeline_status":{"status":%q},"risk":%s}`, pipeline, risk))
		require.NoError(t, err)
		return d
	}
	fastOf := func(sections string) Decision {
		d, err := Fast(fastJSON(sections), "")
		require.NoError(t, err)
		return d
	}
	const safe = `{"level":"safe","score":100}`
	const throttled = `,"errors":[{"source":"ecs:DescribeServices","code":"ThrottlingException"}]`
	for name, test := range map[string]struct {
		decision Decision
		sk       string
		persists bool
	}{
		"gone":                            {factoryOf("normal", safe), "warning#pipeline_status#warning", false},
		"still raised":                    {factoryOf("warning", safe), "warning#pipeline_status#warning", true},
		"a warning became a danger":       {factoryOf("critical", safe), "warning#pipeline_status#warning", true},
		"covered by the pipeline's alert": {factoryOf("warning", `{"level":"warning","score":80}`), "warning#risk_level#state_snapshot", true},
		"another cause":                   {factoryOf("warning", safe), "danger#temperature_critical#state_snapshot", false},
		"a section became critical":       {fastOf(normalRuntime + `,"data_pipeline":{"status":"critical"}`), "warning#data_pipeline_warning#fast", true},
		"a section that is well":          {fastOf(normalRuntime + "," + normalPipeline), "warning#data_pipeline_warning#fast", false},
		"not seen, its collector failed":  {fastOf(normalPipeline + `,"backend_runtime":{"status":"unknown"}` + throttled), "danger#alb_unhealthy_hosts#fast", true},
		"a collector that works again":    {fastOf(normalRuntime + "," + normalPipeline + throttled), "warning#sqs_error#fast", false},
		"a collector refused now":         {fastOf(normalRuntime + "," + normalPipeline + throttled), "warning#ecs_unauthorized#fast", true},
		"the same name in the other half": {fastOf(normalRuntime + `,"data_pipeline":{"status":"critical"}`), "warning#data_pipeline_warning#slow", false},
	} {
		t.Run(name, func(t *testing.T) {
			pk := "ALERT#factory-a"
			if len(test.decision.Alerts) == 0 || test.decision.Alerts[0].Scope == ScopeCloud {
				pk = "ALERT#cloud-infra"
			}
			require.Equal(t, test.persists, test.decision.Persists(Key{PK: pk, SK: test.sk}))
		})
	}
}
