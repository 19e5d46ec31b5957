// Package exact has the decimal number that measurements, scores, money and
// counters use, so that none of them ever passes through a binary float.
package exact

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"
)

// Limits of what Parse takes. They are far above DynamoDB's own (38 digits,
// exponents -130 to 125) and keep a hostile "1e999999999" from being expanded.
const (
	maxLiteral  = 512
	maxExponent = 400
)

// MaxDigits is the number of significant digits that DynamoDB stores exactly.
const MaxDigits = 38

// ErrNotANumber marks text that is no finite decimal number within the limits.
var ErrNotANumber = errors.New("not a finite decimal number")

// Decimal is an exact decimal number. The zero value is 0.
type Decimal struct {
	d decimal.Decimal
}

// Parse reads a decimal literal such as "24.5", "-3" or "1e-7". Its error wraps
// ErrNotANumber.
func Parse(text string) (Decimal, error) {
	if text == "" || len(text) > maxLiteral {
		return Decimal{}, fmt.Errorf("literal of %d characters: %w", len(text), ErrNotANumber)
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return Decimal{}, fmt.Errorf("parse decimal: %w", ErrNotANumber)
	}
	if exp := d.Exponent(); exp > maxExponent || exp < -maxExponent-maxLiteral {
		return Decimal{}, fmt.Errorf("exponent %d out of range: %w", exp, ErrNotANumber)
	}
	return Decimal{d: d}, nil
}

// MustParse is Parse for literals in code; it panics when text is no number.
func MustParse(text string) Decimal {
	d, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

// FromInt is the decimal of a whole number.
func FromInt(i int64) Decimal { return Decimal{d: decimal.NewFromInt(i)} }

// Add is d + e.
func (d Decimal) Add(e Decimal) Decimal { return Decimal{d: d.d.Add(e.d)} }

// Sub is d - e.
func (d Decimal) Sub(e Decimal) Decimal { return Decimal{d: d.d.Sub(e.d)} }

// Mul is d x e.
func (d Decimal) Mul(e Decimal) Decimal { return Decimal{d: d.d.Mul(e.d)} }

// Quo is d / e, rounded half-even to the given number of decimal places. The
// exact quotient decides a tie, not an already rounded one. It panics when e is 0.
func (d Decimal) Quo(e Decimal, places int32) Decimal {
	q, rest := d.d.QuoRem(e.d, places)
	unit := decimal.New(1, -places)
	twice := rest.Abs().Mul(decimal.NewFromInt(2))
	tie := twice.Cmp(e.d.Abs().Mul(unit))
	if tie < 0 || (tie == 0 && isEven(q, places)) {
		return Decimal{d: q}
	}
	if d.d.Sign()*e.d.Sign() < 0 {
		unit = unit.Neg()
	}
	return Decimal{d: q.Add(unit)}
}

func isEven(q decimal.Decimal, places int32) bool {
	return q.Shift(places).BigInt().Bit(0) == 0
}

// Round rounds half-even to the given number of decimal places.
func (d Decimal) Round(places int32) Decimal {
	if d.d.Exponent() >= -places {
		return d
	}
	return Decimal{d: d.d.RoundBank(places)}
}

// Cmp is -1, 0 or 1 as d is smaller than, equal to or greater than e.
func (d Decimal) Cmp(e Decimal) int { return d.d.Cmp(e.d) }

// Equal tells whether d and e are the same number, however written.
func (d Decimal) Equal(e Decimal) bool { return d.d.Equal(e.d) }

// Less tells whether d is smaller than e.
func (d Decimal) Less(e Decimal) bool { return d.d.LessThan(e.d) }

// AtLeast tells whether d is greater than or equal to e.
func (d Decimal) AtLeast(e Decimal) bool { return d.d.GreaterThanOrEqual(e.d) }

// Sign is -1, 0 or 1.
func (d Decimal) Sign() int { return d.d.Sign() }

// Int64 is the number truncated towards zero and whether it fits.
func (d Decimal) Int64() (int64, bool) {
	whole := d.d.Truncate(0).BigInt()
	return whole.Int64(), whole.IsInt64()
}

// Max is the greater of a and b.
func Max(a, b Decimal) Decimal {
	if a.Less(b) {
		return b
	}
	return a
}

// Min is the smaller of a and b.
func Min(a, b Decimal) Decimal {
	if b.Less(a) {
		return b
	}
	return a
}

// Digits is the number of significant digits, without leading or trailing zeros.
func (d Decimal) Digits() int {
	digits := strings.TrimRight(strings.TrimPrefix(d.d.Coefficient().String(), "-"), "0")
	return max(len(digits), 1)
}

// Storable tells whether DynamoDB keeps the number exactly: at most 38
// significant digits and a magnitude between 1e-130 and 1e126.
func (d Decimal) Storable() bool {
	if d.d.IsZero() {
		return true
	}
	magnitude := d.d.NumDigits() + int(d.d.Exponent())
	return d.Digits() <= MaxDigits && magnitude <= 126 && magnitude > -130
}

// String is the shortest plain notation: no exponent, no trailing zeros ("80",
// "24.5", "-0.05").
func (d Decimal) String() string { return d.d.String() }

// MarshalJSON writes a JSON number, never a string.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a JSON number. A null leaves d as it is, as encoding/json
// wants; strings are refused.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) > 0 && data[0] == '"' {
		return fmt.Errorf("a string stands where a number should: %w", ErrNotANumber)
	}
	parsed, err := Parse(string(data))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
