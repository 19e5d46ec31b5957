package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"millrace/domain/report"
	"millrace/domain/report/reporttest"
	workflows "millrace/workflows/report"
)

func (n *newsroom) publishRequest(draft workflows.DraftResult) workflows.PublishRequest {
	return workflows.PublishRequest{
		Target: testbed, Date: newYear, Timezone: seoul, DraftKey: draft.DraftKey,
		InputTokens: draft.InputTokens, OutputTokens: draft.OutputTokens, Cost: draft.Cost,
	}
}

func (n *newsroom) publish(req workflows.PublishRequest) (workflows.PublishResult, Generation) {
	n.t.Helper()
	result, err := run(n.t, n.publisher.PublishReport, req)
	require.NoError(n.t, err)
	var generation Generation
	require.NoError(n.t, json.Unmarshal([]byte(n.bytes(result.MetadataKey)), &generation))
	return result, generation
}

func TestAValidDraftIsPublished(t *testing.T) {
	n := newNewsroom(t)
	draft := n.draft()
	result, generation := n.publish(n.publishRequest(draft))
	require.Equal(t, workflows.GeneratorModel, result.Generator)
	require.Equal(t, "danger", result.Verdict)
	require.NotEmpty(t, result.Summary)
	require.Empty(t, result.Reason)

	markdown, page := n.bytes(result.ReportKey), n.bytes(result.HTMLKey)
	require.True(t, strings.HasPrefix(markdown, "# factory-b 일일 운영 리포트 - 2026-01-01\n"))
	require.Contains(t, markdown, "실제 LLM이 아니라", "the stand-in is called what it is")
	require.Contains(t, markdown, n.model)
	require.Contains(t, page, "<svg")
	require.Contains(t, markdown, "## 핵심 지표 표")
	require.Contains(t, markdown, "## 검증 기준 수치")
	for key, want := range map[string]string{result.ReportKey: "text/markdown; charset=utf-8", result.HTMLKey: "text/html; charset=utf-8", result.MetadataKey: "application/json"} {
		head, err := n.Store.Bucket.Client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &n.Store.Bucket.Name, Key: &key})
		require.NoError(t, err)
		require.Equal(t, want, aws.ToString(head.ContentType))
	}

	require.Equal(t, "passed", generation.ValidationStatus)
	require.Equal(t, n.model, generation.ModelID)
	require.True(t, generation.StandIn)
	require.Equal(t, draft.DraftKey, generation.DraftKey)
	require.Len(t, generation.PromptDigest, 64)
	require.Equal(t, draft.InputTokens, generation.InputTokens)
	require.Equal(t, draft.Cost, generation.Cost)
	require.Equal(t, draft.Cost, generation.Draft.Cost.String())
	require.False(t, generation.GeneratedAt.IsZero())
	require.Equal(t, result.ReportKey, generation.ReportKey)
}

func TestPublishingAgainWritesTheSameReport(t *testing.T) {
	n := newNewsroom(t)
	request := n.publishRequest(n.draft())
	first, _ := n.publish(request)
	markdown, page := n.bytes(first.ReportKey), n.bytes(first.HTMLKey)
	n.calls.Take()
	second, _ := n.publish(request)
	require.Equal(t, first, second)
	require.Equal(t, markdown, n.bytes(first.ReportKey))
	require.Equal(t, page, n.bytes(first.HTMLKey))
	n.calls.Take()
	_, err := run(t, n.publisher.PublishReport, request)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"GetObject": 3, "PutObject": 3}, n.calls.Take())
}

func TestTheTemplateIsMarkedAsSuch(t *testing.T) {
	n := newNewsroom(t)
	request := n.publishRequest(workflows.DraftResult{InputTokens: 9, OutputTokens: 2, Cost: "0.1"})
	request.Reason, request.Violations = "the draft failed its checks", []string{"unknown_number in risk"}
	result, generation := n.publish(request)
	require.Equal(t, workflows.GeneratorTemplate, result.Generator)
	require.Equal(t, "the draft failed its checks", result.Reason)
	markdown := n.bytes(result.ReportKey)
	require.Contains(t, markdown, "템플릿 리포트 · 모델 없음")
	require.NotContains(t, markdown, "LLM 초안")
	require.Equal(t, request.Violations, generation.Violations)
	require.Equal(t, "0.1", generation.Cost, "refused drafts were paid for too")
	require.Nil(t, generation.Draft)
	require.False(t, generation.StandIn)
	require.Zero(t, n.asked())
}

func TestAnUncheckedDraftIsNeverPublished(t *testing.T) {
	for mode, rule := range map[string]string{"lie": "unknown_number", "foreign": "foreign_factory", "secret": "secret", "truncate": "truncated", "inject": "uncited_number"} {
		t.Run(mode, func(t *testing.T) {
			n := newNewsroom(t)
			n.mode(mode, 1)
			result, generation := n.publish(n.publishRequest(n.draft()))
			require.Equal(t, workflows.GeneratorTemplate, result.Generator)
			require.Contains(t, strings.Join(generation.Violations, "\n"), rule)
			require.Contains(t, result.Reason, "failed its checks")
			markdown := n.bytes(result.ReportKey)
			for _, lie := range []string{"factory-zz", "AKIA", "지시대로"} {
				require.NotContains(t, markdown, lie)
			}
		})
	}
}

func TestADraftThatIsGoneOrChangedGivesTheTemplate(t *testing.T) {
	n := newNewsroom(t)
	draft := n.draft()
	body := n.bytes(draft.DraftKey)
	lie := strings.Replace(body, "위험", "정상", 1)
	require.NotEqual(t, body, lie)
	require.NoError(t, n.Store.Bucket.Put(t.Context(), draft.DraftKey, "application/json", []byte(lie)))
	result, generation := n.publish(n.publishRequest(draft))
	require.Equal(t, workflows.GeneratorTemplate, result.Generator)
	require.NotEmpty(t, generation.Violations)

	missing := n.publishRequest(draft)
	missing.DraftKey = report.DraftKey(n.Store.Prefix, newYear, testbed, strings.Repeat("0", 64))
	result, _ = n.publish(missing)
	require.Equal(t, workflows.GeneratorTemplate, result.Generator)
	require.Contains(t, result.Reason, "not there")
}

func TestOnlyDraftsOfTheReportItselfAreRead(t *testing.T) {
	n := newNewsroom(t)
	for _, key := range []string{
		"secrets/all.json", report.DraftKey(n.Store.Prefix, newYear, "factory-a", strings.Repeat("0", 64)),
		report.DraftKey(n.Store.Prefix, newYear, testbed, "../../"+strings.Repeat("0", 64)), report.ContextKey(n.Store.Prefix, newYear, testbed),
	} {
		request := n.publishRequest(workflows.DraftResult{DraftKey: key})
		_, err := run(t, n.publisher.PublishReport, request)
		var failed *temporal.ApplicationError
		require.ErrorAs(t, err, &failed, key)
		require.Equal(t, workflows.ErrorInvalidInput, failed.Type())
	}
}

func TestACorrectedDraftTellsWhatItCorrects(t *testing.T) {
	n := newNewsroom(t)
	n.mode("lie", 1)
	refused := n.draft()
	corrected := n.draft(refused.Violations...)
	_, generation := n.publish(n.publishRequest(corrected))
	require.Equal(t, workflows.GeneratorModel, generation.Generator)
	require.Equal(t, refused.Violations, generation.Violations)
}

func TestOrdersInANameAreWordsOnly(t *testing.T) {
	n := newNewsroom(t)
	result, _ := n.publish(n.publishRequest(n.draft()))
	for _, body := range []string{n.bytes(result.ReportKey), n.bytes(result.HTMLKey)} {
		require.NotContains(t, body, reporttest.InjectedName)
		require.NotContains(t, body, "\n| a | b |")
	}
	require.Equal(t, 1, strings.Count(n.bytes(result.ReportKey), "\n## 요약\n"))
}

func TestAnEmptyDayGivesAShortTemplate(t *testing.T) {
	n := newNewsroom(t)
	day, err := report.ParseDay(newYear, seoul)
	require.NoError(t, err)
	empty := report.MergeFactoryDay(testbed, day, n.Settings, nil)
	n.put(report.DailyKey(n.Store.Prefix, newYear, testbed), empty)
	n.put(report.ContextKey(n.Store.Prefix, newYear, testbed), empty.Context(n.Settings))
	result, generation := n.publish(n.publishRequest(workflows.DraftResult{}))
	require.Equal(t, workflows.GeneratorTemplate, result.Generator)
	require.NotContains(t, n.bytes(result.HTMLKey), "<svg viewBox=\"0 0 760")
	require.Empty(t, generation.ModelID, "no model was asked")
}

func TestTheCloudInfrastructureIsWordedToo(t *testing.T) {
	n := newNewsroom(t)
	day, err := report.ParseDay(newYear, seoul)
	require.NoError(t, err)
	hour := report.NewCloudHour(day, day.Hours()[0], n.Settings)
	for object := range (reporttest.CloudDay{Start: day.Window().Start, End: day.Window().End}).Objects() {
		hour.Add(object.Dataset, object.Body)
	}
	daily := report.MergeCloudDay(day, n.Settings, []report.CloudHourSummary{hour.Summary()})
	n.put(report.DailyKey(n.Store.Prefix, newYear, report.CloudTarget), daily)
	n.put(report.ContextKey(n.Store.Prefix, newYear, report.CloudTarget), daily.Context(n.Settings))
	request := n.request()
	request.Target = report.CloudTarget
	draft, err := run(t, n.writer.DraftReport, request)
	require.NoError(t, err)
	require.True(t, draft.Valid, "%v", draft.Violations)
	publish := n.publishRequest(draft)
	publish.Target = report.CloudTarget
	result, err := run(t, n.publisher.PublishReport, publish)
	require.NoError(t, err)
	require.Equal(t, workflows.GeneratorModel, result.Generator)
	require.Contains(t, n.bytes(result.ReportKey), "# Cloud Infra 일일 운영 리포트 - 2026-01-01")
}

func TestMetadataComeLast(t *testing.T) {
	n := newNewsroom(t)
	puts := 0
	n.calls.Fail(func(operation string) error {
		if operation != "PutObject" {
			return nil
		}
		if puts++; puts == 3 {
			return errors.New("killed")
		}
		return nil
	})
	_, err := run(t, n.publisher.PublishReport, n.publishRequest(workflows.DraftResult{}))
	require.ErrorContains(t, err, "killed")
	n.calls.Fail(nil)
	require.NotEmpty(t, n.bytes(report.MarkdownKey(n.Store.Prefix, newYear, testbed)))
	exists, err := n.Store.Bucket.Exists(t.Context(), report.MetadataKey(n.Store.Prefix, newYear, testbed))
	require.NoError(t, err)
	require.False(t, exists)
	result, _ := n.publish(n.publishRequest(workflows.DraftResult{}))
	require.Equal(t, workflows.GeneratorTemplate, result.Generator)
}
