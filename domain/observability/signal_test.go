package observability

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func decimal(text string) *exact.Decimal {
	d := exact.MustParse(text)
	return &d
}

// valid is a signal that breaks no rule at noon.
func valid() Signal {
	return Signal{SignalID: "s-1", AppID: "app-x", Timestamp: noon, Protocol: AIGP, Type: Request, Status: StatusOK}
}

func TestASignalIsRefusedByFieldAndRule(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Signal)
		field  string
	}{
		"no app":                 {func(s *Signal) { s.AppID = "" }, "app_id"},
		"app with #":             {func(s *Signal) { s.AppID = "a#b" }, "app_id"},
		"app with /":             {func(s *Signal) { s.AppID = "a/b" }, "app_id"},
		"app of 65":              {func(s *Signal) { s.AppID = strings.Repeat("a", 65) }, "app_id"},
		"id with #":              {func(s *Signal) { s.SignalID = "a#b" }, "signal_id"},
		"request with a space":   {func(s *Signal) { s.RequestID = "a b" }, "request_id"},
		"parent of 129":          {func(s *Signal) { s.ParentSignalID = strings.Repeat("a", 129) }, "parent_signal_id"},
		"protocol":               {func(s *Signal) { s.Protocol = "http" }, "protocol"},
		"type":                   {func(s *Signal) { s.Type = "" }, "type"},
		"status":                 {func(s *Signal) { s.Status = "bad" }, "status"},
		"name":                   {func(s *Signal) { s.Name = strings.Repeat("가", 257) }, "name"},
		"model no UTF-8":         {func(s *Signal) { s.Model = "\xff" }, "model"},
		"no timestamp":           {func(s *Signal) { s.Timestamp = time.Time{} }, "timestamp"},
		"ahead":                  {func(s *Signal) { s.Timestamp = noon.Add(MaxAhead + 1) }, "timestamp"},
		"old":                    {func(s *Signal) { s.Timestamp = noon.Add(-MaxAge - 1) }, "timestamp"},
		"negative tokens":        {func(s *Signal) { s.Reasoning = -1 }, "reasoning_tokens"},
		"huge tokens":            {func(s *Signal) { s.TotalTokens = MaxTokens + 1 }, "total_tokens"},
		"negative duration":      {func(s *Signal) { s.DurationMS = decimal("-1") }, "duration_ms"},
		"duration of nanos":      {func(s *Signal) { s.DurationMS = decimal("0.0000001") }, "duration_ms"},
		"long duration":          {func(s *Signal) { s.DurationMS = decimal("604800000.1") }, "duration_ms"},
		"negative cost":          {func(s *Signal) { s.CostUSD = decimal("-0.1") }, "cost_usd"},
		"cost of 31 places":      {func(s *Signal) { s.CostUSD = decimal("0." + strings.Repeat("0", 30) + "1") }, "cost_usd"},
		"dear":                   {func(s *Signal) { s.CostUSD = decimal("100000.01") }, "cost_usd"},
		"attribute without name": {func(s *Signal) { s.Attributes = map[string]string{"": "x"} }, "attributes"},
		"large attributes":       {func(s *Signal) { s.Attributes = map[string]string{"x": strings.Repeat("x", MaxAttributes)} }, "attributes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid()
			c.change(&s)
			var broken *InvalidError
			require.ErrorAs(t, s.Check(noon), &broken)
			require.Equal(t, c.field, broken.Field)
		})
	}
	s := valid()
	require.NoError(t, s.Check(noon))
	s.Timestamp = noon.Add(-MaxAge)
	s.CostUSD, s.DurationMS = decimal("99999.123456789012345678901234567890"), decimal("604800000")
	require.NoError(t, s.Check(noon))
}

func TestTheSameSignalHasTheSameIDInAnyWriting(t *testing.T) {
	parse := func(body string) Signal {
		t.Helper()
		s, err := ParseSignal([]byte(body))
		require.NoError(t, err)
		s, err = s.Receive(noon, Prices{})
		require.NoError(t, err)
		return s
	}
	a := parse(`{"app_id":"a","timestamp":"2026-05-04T12:00:00Z","protocol":"acp","type":"decision","cost_usd":1.50,"attributes":{"x":"1","y":"2"}}`)
	b := parse(`{"attributes":{"y":"2","x":"1"},"cost_usd":"1.5","type":"decision","protocol":"acp","timestamp":"2026-05-04T21:00:00.000+09:00","app_id":"a"}`)
	require.Equal(t, a.SignalID, b.SignalID)
	require.Equal(t, uuid.Version(5), uuid.MustParse(a.SignalID).Version())
	c := parse(`{"app_id":"a","timestamp":"2026-05-04T12:00:00Z","protocol":"acp","type":"decision","cost_usd":1.51}`)
	require.NotEqual(t, a.SignalID, c.SignalID)
}

func TestATotalThatIsNotTheSumIsFlaggedAndKept(t *testing.T) {
	s := valid()
	s.Tokens = Tokens{Input: 5, CachedInput: 4, Output: 3, Reasoning: 2}
	received, err := s.Receive(noon, Prices{})
	require.NoError(t, err)
	require.EqualValues(t, 14, received.TotalTokens)
	require.False(t, received.TokenMismatch)
	s.TotalTokens = 12
	received, err = s.Receive(noon, Prices{})
	require.NoError(t, err)
	require.EqualValues(t, 12, received.TotalTokens)
	require.True(t, received.TokenMismatch)
	counters := Counters{}
	counters.Count(received.Pending())
	require.Equal(t, "1", counters.Of(CountMismatches).String())
}

func TestATotalOfZeroIsATotalToo(t *testing.T) {
	receive := func(body string) Signal {
		t.Helper()
		s, err := ParseSignal([]byte(body))
		require.NoError(t, err)
		s, err = s.Receive(noon, Prices{})
		require.NoError(t, err)
		return s
	}
	const common = `{"app_id":"a","timestamp":"2026-05-04T12:00:00Z","protocol":"acp","type":"request","input_tokens":5`
	told := receive(common + `,"total_tokens":0}`)
	require.Zero(t, told.TotalTokens)
	require.True(t, told.TokenMismatch)
	for _, body := range []string{common + `}`, common + `,"total_tokens":null}`} {
		silent := receive(body)
		require.EqualValues(t, 5, silent.TotalTokens)
		require.False(t, silent.TokenMismatch)
	}
}

func TestSignalsAreReadStrictly(t *testing.T) {
	for body, field := range map[string]string{
		`{"app_id":1}`: "app_id", `{"colour":1}`: "colour", `{"input_tokens":1.5}`: "input_tokens", `{"input_tokens":true}`: "input_tokens",
		`{"cost_usd":"Infinity"}`: "cost_usd", `{"cost_usd":1e999999999}`: "cost_usd", `{"duration_ms":{}}`: "duration_ms",
		`{"timestamp":"2026-05-04 12:00"}`: "timestamp", `{"attributes":{"x":1}}`: "attributes", `{`: "signal", `{} {}`: "signal", `7`: "signal",
		`{"total_tokens":99999999999999999999}`: "total_tokens",
	} {
		_, err := ParseSignal([]byte(body))
		var broken *InvalidError
		require.ErrorAs(t, err, &broken, body)
		require.Truef(t, strings.HasPrefix(broken.Field, field), "%s: %s", body, broken.Field)
	}
	s, err := ParseSignal([]byte(`{"cost_usd":0.123456789012345678901234567891,"input_tokens":1e3,"duration_ms":null}`))
	require.NoError(t, err)
	require.Equal(t, "0.123456789012345678901234567891", s.CostUSD.String())
	require.EqualValues(t, 1000, s.Input)
	require.Nil(t, s.DurationMS)
}

func TestBatchesComeInThreeShapes(t *testing.T) {
	for body, n := range map[string]int{`{"app_id":"a"}`: 1, `[{},{}]`: 2, ` {"signals":[{},{},{}]} `: 3} {
		list, err := ParseBatch([]byte(body))
		require.NoError(t, err, body)
		require.Len(t, list, n)
	}
	for _, body := range []string{``, `[]`, `{"signals":[]}`, `{"signals":1}`, `{"signals":[{}],"x":1}`, `x`, `[`, `{`} {
		_, err := ParseBatch([]byte(body))
		var broken *InvalidError
		require.ErrorAs(t, err, &broken, body)
	}
}

func FuzzParseSignal(f *testing.F) {
	f.Add([]byte(`{"app_id":"a","timestamp":"2026-05-04T12:00:00Z","protocol":"acp","type":"decision","cost_usd":1.50,"attributes":{"x":"1"}}`))
	f.Add([]byte(`{"cost_usd":"1e-30","input_tokens":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := ParseSignal(body)
		if err != nil {
			return
		}
		received, err := s.Receive(noon, Prices{})
		if err != nil {
			return
		}
		if err := received.Check(noon); err != nil {
			t.Fatalf("a received signal breaks a rule: %v", err)
		}
		again, err := s.Receive(noon, Prices{})
		if err != nil || again.SignalID != received.SignalID {
			t.Fatalf("received again it has another id")
		}
		if at, id, err := ParseSignalSK(SignalSK(received.Timestamp, received.SignalID)); err != nil || id != received.SignalID || !at.Equal(received.Timestamp) {
			t.Fatalf("its key can't be read: %v", err)
		}
	})
}

func TestShardsAreThoseOfTheDesign(t *testing.T) {
	// FNV-1a 32 of "" is the offset basis 2166136261, of "a" 0xe40c292c.
	require.Equal(t, 2166136261%16, ShardOf(""))
	require.Equal(t, 0xe40c292c%16, ShardOf("a"))
	require.Equal(t, fmt.Sprintf("PENDING#%d", 12), PendingPK(ShardOf("a")))
}
