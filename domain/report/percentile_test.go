package report

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
)

func decimals(texts ...string) []exact.Decimal {
	list := make([]exact.Decimal, 0, len(texts))
	for _, text := range texts {
		list = append(list, exact.MustParse(text))
	}
	return list
}

func TestPercentilesAreOfTheNearestRank(t *testing.T) {
	d := distributionOf(decimals("15", "20", "35", "40", "50"))
	for percent, want := range map[int64]string{5: "15", 30: "20", 40: "20", 50: "35", 95: "50", 100: "50"} {
		require.Equal(t, want, d.Percentile(percent).String(), percent)
	}
	require.Equal(t, "7", distributionOf(decimals("7")).Percentile(5).String())
}

func TestFiguresAreRoundedHalfEven(t *testing.T) {
	d := distributionOf(decimals("0.125", "0.135", "0.145"))
	require.Equal(t, "0.12", d.Least().String())
	require.Equal(t, "0.14", d.Greatest().String())
	require.Equal(t, "0.14", d.Average().String(), "0.135 exactly")
	require.Equal(t, "0.14", d.Percentile(50).String())
}

func TestZeroIsAValue(t *testing.T) {
	d := distributionOf(decimals("0", "100"))
	require.Equal(t, "0", d.Least().String())
	require.Equal(t, "0", d.Percentile(5).String())
	require.Equal(t, "50", d.Average().String())
	merged := d.Merge(distributionOf(decimals("50")))
	require.Equal(t, "0", merged.Least().String())
}

func TestNothingHasNoFigures(t *testing.T) {
	d := distributionOf(nil)
	require.Nil(t, d.Least())
	require.Nil(t, d.Greatest())
	require.Nil(t, d.Average())
	require.Nil(t, d.Percentile(50))
	require.Nil(t, Distribution{}.Merge(d).Average())
}

func TestMergedDistributionsAreThatOfAllSamples(t *testing.T) {
	sample := rapid.Custom(func(t *rapid.T) exact.Decimal {
		return exact.FromInt(rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "n")).Quo(exact.FromInt(10_000), 4)
	})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(sample, 0, 30), 1, 5).Draw(t, "parts")
		var merged Distribution
		var all []exact.Decimal
		for _, part := range parts {
			all = append(all, part...)
			merged = merged.Merge(distributionOf(slices.Clone(part)))
		}
		want := distributionOf(slices.Clone(all))
		require.Equal(t, asJSON(t, want.Average()), asJSON(t, merged.Average()))
		require.Equal(t, asJSON(t, want.Least()), asJSON(t, merged.Least()))
		slices.SortFunc(all, exact.Decimal.Cmp)
		for _, percent := range []int64{1, 5, 50, 95, 100} {
			require.Equal(t, asJSON(t, want.Percentile(percent)), asJSON(t, merged.Percentile(percent)))
			if len(all) > 0 {
				rank := (len(all)*int(percent) + 99) / 100
				require.Equal(t, all[rank-1].Round(2).String(), merged.Percentile(percent).String())
			}
		}
	})
}

func asJSON(t require.TestingT, value any) string {
	body, err := json.Marshal(value)
	require.NoError(t, err)
	return string(body)
}
