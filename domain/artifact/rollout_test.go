package artifact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/artifact"
	"millrace/domain/exact"
)

func jobSpec(args string) artifact.Spec {
	return artifact.Spec{Kind: artifact.IoTJob, Args: json.RawMessage(args)}
}

func TestJobArgsAreReadWithTheirDefaults(t *testing.T) {
	args, err := jobSpec(`{"targets":["plant-1","plant-2","plant-3","plant-4"],"waves":[1,2,"rest"]}`).JobArgs()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"plant-1"}, {"plant-2", "plant-3"}, {"plant-4"}}, args.Plan())
	require.Equal(t, "50", args.Gate.MinScore.String())
	require.Equal(t, "10", args.Gate.MaxDrop.String())
	require.Equal(t, 10*time.Minute, args.Gate.Within.Of())

	args, err = jobSpec(`{"targets":["b","a"],"waves":[2],"pause":"5m","gate":{"min_score":84.5,"max_drop":0,"within":"30s"}}`).JobArgs()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"b", "a"}}, args.Plan(), "the order is that of the targets")
	require.Equal(t, "84.5", args.Gate.MinScore.String())
	require.Zero(t, args.Gate.MaxDrop.Sign())
}

func TestBadJobArgsAreNamedByFieldAndRule(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"plant-%d"`, i)
	}
	two := `"targets":["a","b"],"waves":[1,1]`
	for args, want := range map[string]string{
		`{"waves":[1]}`: "spec.args.targets must name 1 to 100 factories",
		`{"targets":[` + strings.Join(many, ",") + `],"waves":["rest"]}`: "spec.args.targets must name 1 to 100",
		`{"targets":["a","a"],"waves":[2]}`:                              "spec.args.targets names a twice",
		`{"targets":["../a"],"waves":[1]}`:                               "spec.args.targets names",
		`{"targets":["cloud-infra"],"waves":[1]}`:                        "spec.args.targets names",
		`{"targets":"a","waves":[1]}`:                                    "spec.args.targets must be a list",
		`{"targets":null,"waves":[1]}`:                                   "spec.args.targets must be a list",
		`{"targets":["a","b"]}`:                                          "spec.args.waves must say",
		`{"targets":["a","b"],"waves":[]}`:                               "spec.args.waves must say",
		`{"targets":["a","b"],"waves":[1]}`:                              "spec.args.waves have 1 factories, but there are 2",
		`{"targets":["a","b"],"waves":[1,2]}`:                            "spec.args.waves have 3",
		`{"targets":["a","b"],"waves":[2,"rest"]}`:                       "spec.args.waves leave none of 2",
		`{"targets":["a","b"],"waves":["rest",1]}`:                       `"rest" once and last`,
		`{"targets":["a","b"],"waves":["rest","rest"]}`:                  `"rest" once and last`,
		`{"targets":["a","b"],"waves":[0,"rest"]}`:                       "spec.args.waves must be a list of whole numbers",
		`{"targets":["a","b"],"waves":[-1,"rest"]}`:                      "spec.args.waves must be a list of whole numbers",
		`{"targets":["a","b"],"waves":[1.5,"rest"]}`:                     "spec.args.waves must be a list of whole numbers",
		`{"targets":["a","b"],"waves":["all"]}`:                          "spec.args.waves must be a list of whole numbers",
		`{` + two + `,"pause":5}`:                                        "spec.args.pause must be text",
		`{` + two + `,"pause":"-1s"}`:                                    "spec.args.pause must be 0s to 24h",
		`{` + two + `,"pause":"24h0m1s"}`:                                "spec.args.pause must be 0s to 24h",
		`{` + two + `,"gate":{"min_score":-0.01}}`:                       "spec.args.gate.min_score must be 0 to 100",
		`{` + two + `,"gate":{"min_score":100.01}}`:                      "spec.args.gate.min_score must be 0 to 100",
		`{` + two + `,"gate":{"min_score":33.3333333}}`:                  "spec.args.gate.min_score must be 0 to 100",
		`{` + two + `,"gate":{"min_score":"50"}}`:                        "spec.args.gate.min_score must be a number",
		`{` + two + `,"gate":{"max_drop":101}}`:                          "spec.args.gate.max_drop must be 0 to 100",
		`{` + two + `,"gate":{"max_drop":null}}`:                         "spec.args.gate.max_drop must be a number",
		`{` + two + `,"gate":{"within":"9s"}}`:                           "spec.args.gate.within must be 10s to 24h",
		`{` + two + `,"gate":{"within":"25h"}}`:                          "spec.args.gate.within must be 10s to 24h",
		`{` + two + `,"gate":{"score":1}}`:                               "spec.args.gate must be an object",
		`{` + two + `,"shell":true}`:                                     "spec.args must be an object",
	} {
		_, err := jobSpec(args).JobArgs()
		var broken *artifact.InvalidError
		require.ErrorAs(t, err, &broken, args)
		require.ErrorContains(t, err, want, args)
	}
}

func TestWhatIsApprovedSaysTargetsWavesAndGate(t *testing.T) {
	r := request()
	r.Spec = jobSpec(`{"waves":[1,"rest"],"targets":["a","b"]}`)
	r.Spec.Policy = request().Spec.Policy
	checked, err := r.Check()
	require.NoError(t, err)
	require.JSONEq(t, `{"targets":["a","b"],"waves":[1,"rest"],"pause":"0s","gate":{"min_score":50,"max_drop":10,"within":"10m0s"}}`, string(checked.Spec.Args))
	before, err := r.Hash()
	require.NoError(t, err)
	after, err := checked.Hash()
	require.NoError(t, err)
	require.Equal(t, before, after, "an author claims the request as it was sent")

	bundles := map[string]bool{}
	for _, args := range []string{
		`{"targets":["a","b"],"waves":[1,"rest"]}`, `{"targets":["b","a"],"waves":[1,"rest"]}`, `{"targets":["a","b"],"waves":[2]}`,
		`{"targets":["a","b"],"waves":[1,"rest"],"pause":"1s"}`, `{"targets":["a","b"],"waves":[1,"rest"],"gate":{"max_drop":11}}`,
	} {
		r.Spec.Args = json.RawMessage(args)
		checked, err := r.Check()
		require.NoError(t, err)
		bundle, err := artifact.BundleHash(checked.Files, checked.Spec)
		require.NoError(t, err)
		bundles[bundle] = true
	}
	require.Len(t, bundles, 5, "any change is another content to approve")
}

func TestContentOfAJobFitsItsDocument(t *testing.T) {
	spec := jobSpec(`{"targets":["a"],"waves":[1]}`)
	require.NoError(t, spec.CheckContent([]artifact.File{{Size: artifact.MaxJobContent}}))
	require.ErrorContains(t, spec.CheckContent([]artifact.File{{Size: 1}, {Filename: "big.sh", Size: artifact.MaxJobContent + 1}}), "big.sh")
	spec.Kind = artifact.Script
	require.NoError(t, spec.CheckContent([]artifact.File{{Size: artifact.MaxJobContent + 1}}))
}

func TestEveryTargetIsInExactlyOneWaveInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		targets := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`), 1, 30, rapid.ID[string]).Draw(t, "targets")
		var waves []artifact.Wave
		for left := len(targets); left > 0; {
			if rapid.Bool().Draw(t, "rest") {
				waves = append(waves, artifact.Rest)
				break
			}
			size := rapid.IntRange(1, left).Draw(t, "size")
			waves, left = append(waves, artifact.Wave(size)), left-size
		}
		body, err := json.Marshal(artifact.JobArgs{Targets: targets, Waves: waves, Gate: artifact.Gate{Within: artifact.Duration(time.Minute)}})
		require.NoError(t, err)
		args, err := jobSpec(string(body)).JobArgs()
		require.NoError(t, err)
		var planned []string
		for i, wave := range args.Plan() {
			require.NotEmpty(t, wave)
			if waves[i] != artifact.Rest {
				require.Len(t, wave, int(waves[i]))
			}
			planned = append(planned, wave...)
		}
		require.Equal(t, targets, planned)
	})
}

func TestTheGateJudgesByScoreAndFreshness(t *testing.T) {
	ended := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	score := func(text string) *exact.Decimal { return new(exact.MustParse(text)) }
	before := artifact.Health{Score: score("90"), FactoryAt: ended.Add(-time.Minute), InfraAt: ended.Add(-time.Minute)}
	fresh := func(text string) artifact.Health {
		return artifact.Health{Score: score(text), FactoryAt: ended.Add(time.Nanosecond), InfraAt: ended.Add(time.Nanosecond)}
	}
	gate := artifact.Gate{MinScore: exact.MustParse("50"), MaxDrop: exact.MustParse("10")}
	for name, c := range map[string]struct {
		gate          artifact.Gate
		before, after artifact.Health
		want          artifact.Verdict
	}{
		"as before":                    {gate, before, fresh("90"), artifact.Passed},
		"better":                       {gate, before, fresh("100"), artifact.Passed},
		"fell by exactly the bound":    {gate, before, fresh("80"), artifact.Passed},
		"fell by a hundredth more":     {gate, before, fresh("79.99"), artifact.ScoreFell},
		"exactly the least score":      {gate, artifact.Health{Score: score("60")}, fresh("50"), artifact.Passed},
		"a hundredth below the least":  {gate, artifact.Health{Score: score("55")}, fresh("49.99"), artifact.ScoreLow},
		"zero is a score":              {gate, before, fresh("0"), artifact.ScoreLow},
		"no baseline to fall from":     {gate, artifact.Health{}, fresh("50"), artifact.Passed},
		"of the very end of the job":   {gate, before, artifact.Health{Score: score("90"), FactoryAt: ended, InfraAt: ended.Add(1)}, artifact.Stale},
		"the cluster stays silent":     {gate, before, artifact.Health{Score: score("90"), FactoryAt: ended.Add(1), InfraAt: ended}, artifact.Stale},
		"there never was a cluster":    {gate, artifact.Health{Score: score("90")}, artifact.Health{Score: score("90"), FactoryAt: ended.Add(1)}, artifact.Passed},
		"no score":                     {gate, before, artifact.Health{FactoryAt: ended.Add(1), InfraAt: ended.Add(1)}, artifact.Stale},
		"never seen":                   {gate, before, artifact.Health{}, artifact.Stale},
		"a job that claims to be old":  {gate, artifact.Health{Score: score("90"), FactoryAt: ended.Add(time.Hour)}, fresh("90"), artifact.Stale},
		"stale comes before low":       {gate, before, artifact.Health{Score: score("1"), FactoryAt: ended}, artifact.Stale},
		"no fall allowed":              {artifact.Gate{}, artifact.Health{Score: score("0.3")}, fresh("0.2"), artifact.ScoreFell},
		"what floats can't subtract":   {artifact.Gate{MaxDrop: exact.MustParse("0.1")}, artifact.Health{Score: score("0.3")}, fresh("0.2"), artifact.Passed},
		"everything allowed":           {artifact.Gate{MaxDrop: exact.FromInt(100)}, artifact.Health{Score: score("100")}, fresh("0"), artifact.Passed},
		"the whole scale is the least": {artifact.Gate{MinScore: exact.FromInt(100)}, before, fresh("99.99"), artifact.ScoreLow},
	} {
		got, why := c.gate.Judge(c.before, c.after, ended)
		require.Equal(t, c.want, got, name)
		require.NotEmpty(t, why, name)
	}
	_, why := gate.Judge(before, fresh("70.5"), ended)
	require.Equal(t, "the score fell from 90 to 70.5, by more than 10", why)
}

func TestAFactoryIsJudgedAgainByWhatItSaysNow(t *testing.T) {
	ended := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, score string) artifact.Health {
		return artifact.Health{Score: new(exact.MustParse(score)), FactoryAt: ended.Add(after)}
	}
	gate := artifact.Gate{MinScore: exact.MustParse("50"), MaxDrop: exact.MustParse("10")}
	before, look := at(-time.Minute, "90"), at(time.Minute, "90")
	for name, c := range map[string]struct {
		now  artifact.Health
		want artifact.Verdict
	}{
		"heard again":            {at(time.Minute+1, "90"), artifact.Passed},
		"as it was at the look":  {look, artifact.Stale},
		"older than at the look": {at(time.Second, "90"), artifact.Stale},
		"bad although not heard": {at(time.Minute, "79"), artifact.ScoreFell},
		"bad and heard":          {at(time.Hour, "10"), artifact.ScoreLow},
	} {
		got, why := gate.JudgeAgain(before, look, c.now, ended)
		require.Equal(t, c.want, got, name)
		require.NotEmpty(t, why)
	}
}

func TestAJobDoesNotEndLongBeforeItWasSent(t *testing.T) {
	sent := time.Date(2026, 5, 31, 12, 0, 0, 0, time.UTC)
	for finished, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, -5 * time.Minute: -5 * time.Minute, -5*time.Minute - 1: -5 * time.Minute, -5 * 365 * 24 * time.Hour: -5 * time.Minute,
	} {
		require.Equal(t, sent.Add(want), artifact.EndOfJob(sent, sent.Add(finished)))
	}
}
