package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"millrace/domain/exact"
)

// Limits of metrics.
const (
	// MaxMetrics bounds how many metrics a source defines.
	MaxMetrics = 50
	// MaxMetricPlaces is the number of decimal places of a measurement.
	MaxMetricPlaces = 9
	// MeanPlaces is the number of decimal places of a mean, rounded half-even.
	MeanPlaces = 9

	maxUnit  = 32
	maxLabel = 100
)

// maxMetric bounds a measurement's magnitude, so that the exact sum of a minute
// or a week always fits DynamoDB's 38 digits.
var maxMetric = exact.MustParse("1e15")

// Kinds of a metric: a gauge is a level that goes up and down, a counter a total
// that never is negative.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Definition says what a metric measures. Key and unit together decide whether
// two measurements may be put together; label and kind only describe.
type Definition struct {
	Key   string `json:"key"`
	Unit  string `json:"unit"`
	Label string `json:"label,omitempty"`
	Kind  string `json:"kind"`
}

// Compatible tells whether d and e measure the same thing in the same unit.
func (d Definition) Compatible(e Definition) bool { return d.Key == e.Key && d.Unit == e.Unit }

var metricKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

func (d Definition) check(field string) error {
	switch {
	case !metricKey.MatchString(d.Key):
		return invalid(field+".key", "must match [A-Za-z][A-Za-z0-9_.-]{0,63}")
	case d.Unit == "" || !shortText(d.Unit, maxUnit):
		return invalid(field+".unit", "must have 1 to 32 visible characters")
	case !shortText(d.Label, maxLabel):
		return invalid(field+".label", "must have at most 100 visible characters")
	case d.Kind != Gauge && d.Kind != Counter:
		return invalid(field+".kind", `must be "gauge" or "counter"`)
	}
	return nil
}

// checkDefinitions refuses broken and repeated definitions.
func checkDefinitions(field string, definitions []Definition) error {
	if len(definitions) > MaxMetrics {
		return invalid(field, fmt.Sprintf("must have at most %d definitions", MaxMetrics))
	}
	for i, d := range definitions {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := d.check(at); err != nil {
			return err
		}
		if _, repeated := definitionOf(definitions[:i], d.Key); repeated {
			return invalid(at+".key", "must not be defined twice")
		}
	}
	return nil
}

// checkOrder refuses an order that repeats a key, or names one without a
// definition. Keys it leaves out come after those it names.
func checkOrder(field string, order []string, definitions []Definition) error {
	if len(order) > MaxMetrics {
		return invalid(field, fmt.Sprintf("must have at most %d keys", MaxMetrics))
	}
	for i, key := range order {
		at := fmt.Sprintf("%s[%d]", field, i)
		if _, defined := definitionOf(definitions, key); !defined {
			return invalid(at, "must be the key of a metric definition")
		}
		if slices.Contains(order[:i], key) {
			return invalid(at, "must not be named twice")
		}
	}
	return nil
}

// checkValue refuses a measurement out of the bounds of its definition.
func (d Definition) checkValue(field string, value exact.Decimal) error {
	switch {
	case !value.Less(maxMetric) || !exact.FromInt(0).Sub(maxMetric).Less(value):
		return invalid(field, "must have at most 15 digits before the point")
	case !value.Round(MaxMetricPlaces).Equal(value):
		return invalid(field, "must have at most 9 decimal places")
	case d.Kind == Counter && value.Sign() < 0:
		return invalid(field, "must not be negative")
	}
	return nil
}

func definitionOf(definitions []Definition, key string) (Definition, bool) {
	i := slices.IndexFunc(definitions, func(d Definition) bool { return d.Key == key })
	if i < 0 {
		return Definition{}, false
	}
	return definitions[i], true
}

// ordered is the definitions in the given order of keys; those that the order
// leaves out follow as they are.
func ordered(definitions []Definition, order []string) []Definition {
	sorted := make([]Definition, 0, len(definitions))
	for _, key := range order {
		if d, defined := definitionOf(definitions, key); defined {
			sorted = append(sorted, d)
		}
	}
	for _, d := range definitions {
		if !slices.Contains(order, d.Key) {
			sorted = append(sorted, d)
		}
	}
	return sorted
}

// shortText tells whether text is valid, has at most limit characters and no
// control or other invisible character than a space.
func shortText(text string, limit int) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > limit {
		return false
	}
	return !slices.ContainsFunc([]rune(text), func(r rune) bool { return r != ' ' && invisible(r) })
}
