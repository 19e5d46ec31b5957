package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

func TestADraftIsReadAsTheToolWroteIt(t *testing.T) {
	doc := sampleDocument()
	body, err := json.Marshal(verbatim(doc))
	require.NoError(t, err)
	draft, err := ParseDraft(doc, body)
	require.NoError(t, err)
	require.Equal(t, verbatim(doc), draft)
}

func TestDraftsOfAnotherShapeAreRefused(t *testing.T) {
	doc := sampleDocument()
	sentence := `{"text":"문장입니다.","findings":["risk-low"]}`
	section := func(id, sentences string) string { return `{"id":"` + id + `","sentences":[` + sentences + `]}` }
	cases := map[string]struct{ body, want string }{
		"nothing":          {``, "draft must be given by calling the tool"},
		"not JSON":         {`I am sorry`, "draft must be the JSON object that the tool's schema asks for"},
		"a list":           {`[]`, "draft must be the JSON object"},
		"two objects":      {`{"sections":[]}{}`, "draft must be one JSON object"},
		"another field":    {`{"sections":[],"note":"x"}`, "draft must be the JSON object"},
		"a number":         {`{"sections":[{"id":"risk","sentences":[{"text":5,"findings":["risk-low"]}]}]}`, "draft must be the JSON object"},
		"too large":        {`{"sections":[],"x":"` + strings.Repeat("a", maxDraftBytes) + `"}`, "draft must have at most 65536 bytes"},
		"not UTF-8":        {"{\"sections\":[{\"id\":\"\xff\"}]}", "draft must be UTF-8"},
		"unknown section":  {`{"sections":[` + section("weather", sentence) + `]}`, "sections[0].id must be a section of the report"},
		"section twice":    {`{"sections":[` + section("risk", sentence) + `,` + section("risk", sentence) + `]}`, "sections[1].id must occur once"},
		"too many":         {`{"sections":[` + section("risk", strings.Repeat(sentence+",", maxSectionSentences)+sentence) + `]}`, "sections[0].sentences must be at most 24"},
		"empty sentence":   {`{"sections":[` + section("risk", `{"text":"","findings":["risk-low"]}`) + `]}`, "sections[0].sentences[0].text must have 1 to 400 characters"},
		"no finding":       {`{"sections":[` + section("risk", `{"text":"문장입니다.","findings":[]}`) + `]}`, "sections[0].sentences[0].findings must be 1 to 8 ids"},
		"unknown finding":  {`{"sections":[` + section("risk", `{"text":"문장입니다.","findings":["risk-low","made-up"]}`) + `]}`, "sections[0].sentences[0].findings[1] must be the id of a finding"},
		"hostile sections": {`{"sections":[` + strings.Repeat(`{"id":"x","sentences":[]},`, maxDraftSections) + `{"id":"x","sentences":[]}]}`, "sections must be at most 32"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDraft(doc, []byte(c.body))
			var bad *InvalidError
			require.ErrorAs(t, err, &bad)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func FuzzParseDraft(f *testing.F) {
	f.Add([]byte(`{"sections":[{"id":"risk","sentences":[{"text":"a","findings":["risk-low"]}]}]}`))
	doc := sampleDocument()
	f.Fuzz(func(t *testing.T, body []byte) {
		draft, err := ParseDraft(doc, body)
		if err != nil {
			require.Empty(t, draft)
			return
		}
		require.LessOrEqual(t, len(draft.Sections), len(doc.Sections))
	})
}

func TestTokensArePricedExactly(t *testing.T) {
	prices, err := ParseTokenPrices(`[{"model":"anthropic.*","input":3,"output":15},{"model":"anthropic.claude-3-haiku*","input":0.25,"output":1.25},{"model":"local","input":0,"output":0}]`)
	require.NoError(t, err)
	for model, want := range map[string]string{
		"anthropic.claude-3-sonnet-20240229-v1:0": "0.019503", "anthropic.claude-3-haiku-x": "0.00162525", "local": "0",
	} {
		cost, known := prices.Cost(model, 4001, 500)
		require.True(t, known)
		require.Equal(t, want, cost.String(), model)
	}
	_, known := prices.Cost("meta.llama", 1, 1)
	require.False(t, known)
	cost, _ := prices.Cost("anthropic.x", 1<<53+1, 0)
	require.Equal(t, exact.MustParse("27021597764.222979").String(), cost.String(), "no float on the way")
}

func TestPricesThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "prices must be", `[] []`: "prices must be", `[{"model":"a","price":1}]`: "prices must be",
		`[{"model":"","input":1,"output":1}]`: "prices[0].model", `[{"model":"a*b","input":1,"output":1}]`: "prices[0].model",
		`[{"model":"a","input":-1,"output":1}]`: "prices[0] must not be negative", `[{"model":"a","input":"1","output":1}]`: "prices must be",
	} {
		_, err := ParseTokenPrices(text)
		require.ErrorContains(t, err, want, text)
	}
	prices, err := ParseTokenPrices(" ")
	require.NoError(t, err)
	require.Empty(t, prices)
}
