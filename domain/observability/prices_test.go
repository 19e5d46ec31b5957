package observability

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

const table = `{"version":"v7","models":[
	{"model":"big","from":"2026-01-01","input":3,"cached_input":0.3,"output":15,"reasoning":15},
	{"model":"big","from":"2026-05-01","input":1.5,"cached_input":0.15,"output":7.5,"reasoning":7.5},
	{"model":"big-*","from":"2026-01-01","input":9,"cached_input":9,"output":9,"reasoning":9},
	{"model":"big-mini*","from":"2026-01-01","input":0.1,"cached_input":0,"output":0.4,"reasoning":0.4}]}`

func TestPricesAreThoseOfTheModelAndTheDay(t *testing.T) {
	prices, err := ParsePrices([]byte(table))
	require.NoError(t, err)
	for _, c := range []struct {
		model string
		at    time.Time
		want  string
	}{
		{"big", noon, "0.0000228"},
		{"big", time.Date(2026, 4, 30, 23, 59, 59, 0, time.UTC), "0.0000456"},
		{"big", time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC), ""},
		{"big-2", noon, "0.000045"},
		{"big-mini-3", noon, "0.0000012"},
		{"small", noon, ""},
		{"", noon, ""},
	} {
		s := valid()
		s.Model, s.Timestamp, s.Tokens = c.model, c.at, Tokens{CachedInput: 2, Output: 1, Reasoning: 2}
		filled := prices.fill(s)
		if c.want == "" {
			require.Nil(t, filled.CostUSD, c.model)
			require.Empty(t, filled.CostSource)
			continue
		}
		require.Equal(t, c.want, filled.CostUSD.String(), c.model)
		require.Equal(t, CostPrices, filled.CostSource)
		require.Equal(t, "v7", filled.PriceVersion)
	}
	s := valid()
	s.Model, s.Tokens = "big", Tokens{Input: 1_000_000, CachedInput: 1, Output: 2, Reasoning: 3}
	require.Equal(t, "1.50003765", prices.fill(s).CostUSD.String())
	s.CostUSD = decimal("0")
	require.Equal(t, CostClient, prices.fill(s).CostSource, "a client may say that it was free")
	s = valid()
	s.Model = "big"
	require.Nil(t, prices.fill(s).CostUSD, "without tokens there is nothing to price")
}

func TestPriceTablesAreChecked(t *testing.T) {
	for _, body := range []string{
		`{`, `{} {}`, `{"version":"","models":[]}`, `{"version":"v","colour":1}`,
		`{"version":"v","models":[{"model":"a*b","from":"2026-01-01"}]}`, `{"version":"v","models":[{"model":"a","from":"May"}]}`,
		`{"version":"v","models":[{"model":"a","from":"2026-01-01","input":-1}]}`, `{"version":"v","models":[{"model":"a","from":"2026-01-01","input":"1"}]}`,
		`{"version":"v","models":[{"model":"a","from":"2026-01-01"},{"model":"a","from":"2026-01-01"}]}`,
	} {
		_, err := ParsePrices([]byte(body))
		require.Error(t, err, body)
	}
	var none Prices
	s := valid()
	s.Model, s.Tokens = "big", Tokens{Input: 1}
	require.Nil(t, none.fill(s).CostUSD)
	require.True(t, exact.FromInt(0).Equal(Price{}.of(Tokens{Input: 5})))
}
