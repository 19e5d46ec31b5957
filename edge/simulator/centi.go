package simulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"millrace/domain/exact"
)

// Centi is a number in hundredths: a reading with exactly two decimals that
// never passes through a binary float.
type Centi int64

var errCenti = errors.New("must be a number with at most two decimals")

// UnmarshalText reads a decimal such as "24.5".
func (c *Centi) UnmarshalText(text []byte) error {
	d, err := exact.Parse(string(text))
	if err != nil {
		return errCenti
	}
	d = d.Mul(exact.FromInt(100))
	whole, fits := d.Int64()
	if !fits || !exact.FromInt(whole).Equal(d) {
		return errCenti
	}
	*c = Centi(whole)
	return nil
}

// UnmarshalJSON reads a JSON number, or a string of one; null changes nothing.
func (c *Centi) UnmarshalJSON(body []byte) error {
	text := string(body)
	if text == "null" {
		return nil
	}
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	return c.UnmarshalText([]byte(text))
}

// String writes two decimals ("24.50", "-0.05").
func (c Centi) String() string {
	sign, n := "", int64(c)
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// MarshalJSON writes a JSON number with two decimals.
func (c Centi) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// Band is a range of readings: a base and the greatest deviation from it.
type Band struct {
	Base, Jitter Centi
}

func (b Band) draw(rng *rand.Rand) Centi { return between(rng, b.Base-b.Jitter, b.Base+b.Jitter) }

const hundredPercent = 100_00

// percent is a reading that can't leave 0..100.
func (b Band) percent(rng *rand.Rand) Centi { return max(0, min(b.draw(rng), hundredPercent)) }

// between draws uniformly from low to high, both included.
func between(rng *rand.Rand, low, high Centi) Centi {
	return low + Centi(rng.Int64N(int64(high-low)+1))
}
