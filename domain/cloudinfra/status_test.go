package cloudinfra

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func d(text string) *exact.Decimal {
	value := exact.MustParse(text)
	return &value
}

func TestWorstOf(t *testing.T) {
	cases := []struct {
		states []Status
		want   Status
	}{
		{nil, Unknown},
		{[]Status{NotConfigured, NotConfigured}, Unknown},
		{[]Status{Normal, NotConfigured}, Normal},
		{[]Status{Normal, Unknown}, Unknown},
		{[]Status{Unknown, Warning, Normal}, Warning},
		{[]Status{Warning, Critical, Unknown}, Critical},
		{[]Status{"", Normal}, Unknown},
		{[]Status{"strange", Warning}, Warning},
	}
	for _, c := range cases {
		require.Equal(t, c.want, Worst(c.states...), "%v", c.states)
	}
}

func TestWorstDoesNotDependOnOrderOrGrouping(t *testing.T) {
	states := rapid.SliceOfN(rapid.SampledFrom([]Status{Normal, Warning, Critical, Unknown}), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		s := states.Draw(t, "states")
		shuffled := rapid.Permutation(s).Draw(t, "shuffled")
		require.Equal(t, Worst(s...), Worst(shuffled...))
		cut := rapid.IntRange(0, len(s)-1).Draw(t, "cut")
		if cut > 0 {
			require.Equal(t, Worst(s...), Worst(Worst(s[:cut]...), Worst(s[cut:]...)))
		}
		require.Equal(t, Worst(s...), Worst(append(s, NotConfigured)...))
	})
}

func TestErrorsAreBoundedAndFreeOfSecrets(t *testing.T) {
	at := factory.MillisOf(noon)
	e := NewError("ecs:DescribeServices", strings.Repeat("c", 100), "line one\nline\ttwo "+strings.Repeat("é", 500), at)
	require.Len(t, []rune(e.Code), maxCode)
	require.Len(t, []rune(e.Message), maxMessage)
	require.True(t, strings.HasPrefix(e.Message, "line one line two "))
	require.Equal(t, "no message", NewError("s", "", " \n", at).Message)
	require.NotContains(t, NewError("s", "", "a\xff b", at).Message, "\xff")

	for _, secret := range []string{
		"k8s-aws-v1.aHR0cHM6Ly9zdHMu", "AKIAABCDEFGHIJKLMNOP", "ASIAABCDEFGHIJKLMNOP", "hunter2hunter2", "Zm9vYmFy", "s3cr3t",
	} {
		for _, message := range []string{
			"Get https://sts.example.org/?X-Amz-Signature=" + secret + "&X-Amz-Expires=60: refused",
			"bearer " + secret + " refused", "token=" + secret, `"password": "` + secret + `"`, "Authorization: " + secret,
			"dial redis://user:" + secret + "@cache:6379",
		} {
			require.NotContains(t, NewError("s", "", message, at).Message, secret, message)
		}
	}
	for _, secret := range []string{"k8s-aws-v1.aHR0cHM6Ly9zdHMu", "AKIAABCDEFGHIJKLMNOP"} {
		require.NotContains(t, NewError("s", "", "alone "+secret, at).Message, secret)
	}
	const harmless = "User is not authorized to perform ecs:DescribeServices: is it the right role?"
	require.Equal(t, harmless, NewError("s", "", harmless, at).Message)
}

func TestBothShapesOfErrorsAreRead(t *testing.T) {
	var errors []Error
	require.NoError(t, json.Unmarshal([]byte(`[
		{"source":"ecs:DescribeServices","code":"AccessDenied","message":"no","at":"2026-06-01T15:30:00Z","factory_id":"factory-a"},
		{"collector":"kubernetes_api","error":"HTTP 401 Unauthorized"}]`), &errors))
	require.Equal(t, []Error{
		{Source: "ecs:DescribeServices", Code: "AccessDenied", Message: "no", At: factory.MillisOf(time.Date(2026, 6, 1, 15, 30, 0, 0, time.UTC)), FactoryID: "factory-a"},
		{Source: "kubernetes_api", Message: "HTTP 401 Unauthorized"},
	}, errors)
}

func TestQuantities(t *testing.T) {
	cpu := map[string]string{"250m": "250", "2": "2000", "0.5": "500", "1500000n": "1.5", "12u": "0.012", "1e3": "1000000", "0": "0"}
	for quantity, want := range cpu {
		got, err := Millicores(quantity)
		require.NoError(t, err, quantity)
		require.Equal(t, want, got.String(), quantity)
	}
	memory := map[string]string{"128Mi": "134217728", "2Gi": "2147483648", "512Ki": "524288", "1048576": "1048576", "1k": "1000", "2M": "2000000", "1.5Gi": "1610612736"}
	for quantity, want := range memory {
		got, err := Bytes(quantity)
		require.NoError(t, err, quantity)
		require.Equal(t, want, got.String(), quantity)
	}
	for _, broken := range []string{"", "m", "Mi", "12x", "-1", "-5m", "NaN", "1 Mi", "1e999999999"} {
		_, err := Millicores(broken)
		require.ErrorIs(t, err, exact.ErrNotANumber, broken)
		_, err = Bytes(broken)
		require.ErrorIs(t, err, exact.ErrNotANumber, broken)
	}
}

func FuzzQuantities(f *testing.F) {
	for _, seed := range []string{"250m", "1Gi", "", "-1", "1e400", "9999999999999999999999n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, quantity string) {
		if v, err := Bytes(quantity); err == nil {
			require.GreaterOrEqual(t, v.Sign(), 0)
		}
		if v, err := Millicores(quantity); err == nil {
			require.GreaterOrEqual(t, v.Sign(), 0)
		}
	})
}

func TestSharesAreRoundedAndNeverDivideByNothing(t *testing.T) {
	require.Nil(t, Percent(exact.FromInt(1), exact.FromInt(0)))
	require.Equal(t, "33.33", Percent(exact.FromInt(1), exact.FromInt(3)).String())
	require.Equal(t, "1.5", Mebibytes(exact.FromInt(1572864)).String())
}
