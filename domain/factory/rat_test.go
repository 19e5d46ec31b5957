package factory

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"millrace/domain/exact"
)

// halfEven rounds by whole numbers, without the decimal library: an independent
// check of every rounding here.
func halfEven(value *big.Rat, places int64) string {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(places), nil)
	scaled := new(big.Rat).Mul(value, new(big.Rat).SetInt(scale))
	floor, rest := new(big.Int).DivMod(scaled.Num(), scaled.Denom(), new(big.Int))
	order := rest.Lsh(rest, 1).Cmp(scaled.Denom())
	if order > 0 || (order == 0 && floor.Bit(0) == 1) {
		floor.Add(floor, big.NewInt(1))
	}
	return exact.MustParse(new(big.Rat).SetFrac(floor, scale).FloatString(int(places))).String()
}

func TestHalfEvenOfWholeNumbers(t *testing.T) {
	for want, value := range map[string]*big.Rat{
		"0.12": big.NewRat(1, 8), "0.38": big.NewRat(3, 8), "-0.12": big.NewRat(-1, 8), "6.67": big.NewRat(20, 3), "-6.67": big.NewRat(-20, 3), "0": big.NewRat(0, 1),
	} {
		require.Equal(t, want, halfEven(value, 2))
	}
}
