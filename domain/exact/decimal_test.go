package exact

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseRefusesWhatIsNoFiniteNumber(t *testing.T) {
	for _, text := range []string{"", "NaN", "Infinity", "abc", "1e999999999", "1e-999999999", "0x10", "1 2", strings.Repeat("9", 513)} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrNotANumber, text)
	}
}

func TestStringIsPlainAndShortest(t *testing.T) {
	for text, want := range map[string]string{
		"80.0": "80", "0012": "12", "1E2": "100", "1.50": "1.5", "-0.050": "-0.05", "0e5": "0", "-0": "0",
	} {
		require.Equal(t, want, MustParse(text).String(), text)
	}
}

func TestRoundIsHalfEven(t *testing.T) {
	for text, want := range map[string]string{
		"0.125": "0.12", "0.135": "0.14", "0.1250001": "0.13", "-0.125": "-0.12", "2.5": "2.5",
	} {
		require.Equal(t, want, MustParse(text).Round(2).String(), text)
	}
}

func TestQuoRoundsTheExactQuotientHalfEven(t *testing.T) {
	cases := []struct {
		num, den string
		places   int32
		want     string
	}{
		{"20", "3", 2, "6.67"},
		{"10", "3", 2, "3.33"},
		{"1", "8", 2, "0.12"},
		{"3", "8", 2, "0.38"},
		{"-1", "8", 2, "-0.12"},
		{"-20", "3", 2, "-6.67"},
		{"20", "-3", 2, "-6.67"},
		{"0", "7", 2, "0"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, MustParse(c.num).Quo(MustParse(c.den), c.places).String(), "%s/%s", c.num, c.den)
	}
}

func TestQuoIsNeverMoreThanHalfAUnitOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := rapid.Int64Range(-1e12, 1e12).Draw(t, "num")
		den := rapid.Int64Range(1, 1e6).Draw(t, "den")
		got, ok := new(big.Rat).SetString(FromInt(num).Quo(FromInt(den), 3).String())
		require.True(t, ok)
		off := new(big.Rat).Sub(got, big.NewRat(num, den))
		require.LessOrEqual(t, off.Abs(off).Cmp(big.NewRat(1, 2000)), 0)
	})
}

func TestJSONKeepsEveryDigitAndIsANumber(t *testing.T) {
	literal := "9007199254740993.123456789012345678901"
	var d Decimal
	require.NoError(t, json.Unmarshal([]byte(literal), &d))
	out, err := json.Marshal(d)
	require.NoError(t, err)
	require.Equal(t, literal, string(out))
}

func TestJSONRefusesAStringAndKeepsNull(t *testing.T) {
	var d Decimal
	require.ErrorIs(t, json.Unmarshal([]byte(`"1"`), &d), ErrNotANumber)
	var p *Decimal
	require.NoError(t, json.Unmarshal([]byte(`null`), &p))
	require.Nil(t, p)
}

func TestStorableFollowsDynamoDBsLimits(t *testing.T) {
	require.True(t, MustParse(strings.Repeat("9", 38)).Storable())
	require.False(t, MustParse(strings.Repeat("9", 39)).Storable())
	require.True(t, MustParse("1e125").Storable())
	require.False(t, MustParse("1e126").Storable())
	require.True(t, MustParse("0").Storable())
	require.True(t, MustParse("1"+strings.Repeat("0", 60)).Storable())
}

func TestInt64Truncates(t *testing.T) {
	n, ok := MustParse("-3.9").Int64()
	require.True(t, ok)
	require.Equal(t, int64(-3), n)
	_, ok = MustParse("1e30").Int64()
	require.False(t, ok)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1", "-1.5e3", "1e400", "NaN", "١"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(d.String())
		if len(d.String()) <= maxLiteral {
			require.NoError(t, err)
			require.True(t, d.Equal(again))
		}
	})
}

func TestDigitsAreTheSignificantOnes(t *testing.T) {
	for text, want := range map[string]int{
		"0": 1, "0.000": 1, "1": 1, "-1": 1, "100": 1, "1e30": 1, "0.0001": 1, "10.10": 3, "-100.5": 4, "1234.5678": 8, "0.10203": 5,
	} {
		require.Equal(t, want, MustParse(text).Digits(), text)
	}
}
