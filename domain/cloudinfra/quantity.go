package cloudinfra

import (
	"fmt"
	"strings"

	"millrace/domain/exact"
)

// perCore are the suffixes of CPU quantities in millicores.
var perCore = []unit{
	{"n", exact.MustParse("0.000001")}, {"u", exact.MustParse("0.001")}, {"m", exact.FromInt(1)}, {"", exact.FromInt(1000)},
}

// perByte are the suffixes of memory quantities in bytes.
var perByte = []unit{
	{"Ki", exact.FromInt(1 << 10)},
	{"Mi", exact.FromInt(1 << 20)},
	{"Gi", exact.FromInt(1 << 30)},
	{"Ti", exact.FromInt(1 << 40)},
	{"k", exact.FromInt(1e3)},
	{"M", exact.FromInt(1e6)},
	{"G", exact.FromInt(1e9)},
	{"T", exact.FromInt(1e12)},
	{"m", exact.MustParse("0.001")},
	{"", exact.FromInt(1)},
}

type unit struct {
	suffix string
	scale  exact.Decimal
}

// Millicores reads a Kubernetes CPU quantity ("250m", "1500000n", "2") as
// thousandths of a core.
func Millicores(quantity string) (exact.Decimal, error) { return scaled(quantity, perCore) }

// Bytes reads a Kubernetes memory quantity ("128Mi", "2Gi", "1048576") as bytes.
func Bytes(quantity string) (exact.Decimal, error) { return scaled(quantity, perByte) }

func scaled(quantity string, units []unit) (exact.Decimal, error) {
	for _, u := range units {
		number, ok := strings.CutSuffix(quantity, u.suffix)
		if !ok {
			continue
		}
		d, err := exact.Parse(number)
		if err != nil || d.Sign() < 0 {
			return exact.Decimal{}, fmt.Errorf("read quantity %q: %w", bounded(quantity, maxCode), exact.ErrNotANumber)
		}
		return d.Mul(u.scale), nil
	}
	return exact.Decimal{}, fmt.Errorf("read quantity %q: %w", bounded(quantity, maxCode), exact.ErrNotANumber)
}

// places are the decimal places of values that are calculated here.
const places = 2

var mebibyte = exact.FromInt(1 << 20)

// Mebibytes is a number of bytes in MiB, rounded to two decimal places.
func Mebibytes(bytes exact.Decimal) exact.Decimal { return bytes.Quo(mebibyte, places) }

// Percent is the share of a whole in percent, rounded to two decimal places; nil
// of nothing.
func Percent(share, whole exact.Decimal) *exact.Decimal {
	if whole.Sign() <= 0 {
		return nil
	}
	p := share.Mul(exact.FromInt(100)).Quo(whole, places)
	return &p
}
