package report

import (
	"slices"

	"millrace/domain/exact"
)

// figurePlaces are the decimals of a report's figures, ratePlaces those of rates.
const (
	figurePlaces = 2
	ratePlaces   = 4
)

// Distribution is a quantity's samples as far as averages, extremes and
// percentiles need them. Values are the distinct samples rounded to 2 decimals,
// ascending; rounding keeps order, so that percentiles of 2 decimals stay exact
// when distributions are merged.
type Distribution struct {
	Count  int64           `json:"count"`
	Sum    exact.Decimal   `json:"sum"`
	Min    exact.Decimal   `json:"min"`
	Max    exact.Decimal   `json:"max"`
	Values []exact.Decimal `json:"values"`
	Counts []int64         `json:"counts"`
}

// distributionOf is the distribution of samples, which it may reorder.
func distributionOf(samples []exact.Decimal) Distribution {
	d := Distribution{Count: int64(len(samples)), Values: []exact.Decimal{}, Counts: []int64{}}
	if len(samples) == 0 {
		return d
	}
	slices.SortFunc(samples, exact.Decimal.Cmp)
	d.Min, d.Max = samples[0], samples[len(samples)-1]
	for _, sample := range samples {
		d.Sum = d.Sum.Add(sample)
		d.Values, d.Counts = count(d.Values, d.Counts, sample.Round(figurePlaces), 1)
	}
	return d
}

// count adds times of a value that is not below the last one.
func count(values []exact.Decimal, counts []int64, value exact.Decimal, times int64) ([]exact.Decimal, []int64) {
	if last := len(values) - 1; last >= 0 && values[last].Equal(value) {
		counts[last] += times
		return values, counts
	}
	return append(values, value), append(counts, times)
}

// Merge is the distribution of the samples of both.
func (d Distribution) Merge(other Distribution) Distribution {
	switch {
	case d.Count == 0:
		return other
	case other.Count == 0:
		return d
	}
	merged := Distribution{
		Count: d.Count + other.Count, Sum: d.Sum.Add(other.Sum),
		Min: exact.Min(d.Min, other.Min), Max: exact.Max(d.Max, other.Max),
	}
	i, j := 0, 0
	for i < d.distinct() || j < other.distinct() {
		if j == other.distinct() || (i < d.distinct() && d.Values[i].Less(other.Values[j])) {
			merged.Values, merged.Counts = count(merged.Values, merged.Counts, d.Values[i], d.Counts[i])
			i++
			continue
		}
		merged.Values, merged.Counts = count(merged.Values, merged.Counts, other.Values[j], other.Counts[j])
		j++
	}
	return merged
}

// distinct is the number of distinct values.
func (d Distribution) distinct() int { return min(len(d.Values), len(d.Counts)) }

// Average is the mean with 2 decimals, nil without samples.
func (d Distribution) Average() *exact.Decimal {
	if d.Count <= 0 {
		return nil
	}
	average := d.Sum.Quo(exact.FromInt(d.Count), figurePlaces)
	return &average
}

// Least is the smallest sample with 2 decimals, nil without samples.
func (d Distribution) Least() *exact.Decimal { return d.figure(d.Min) }

// Greatest is the greatest sample with 2 decimals, nil without samples.
func (d Distribution) Greatest() *exact.Decimal { return d.figure(d.Max) }

func (d Distribution) figure(value exact.Decimal) *exact.Decimal {
	if d.Count <= 0 {
		return nil
	}
	value = value.Round(figurePlaces)
	return &value
}

// Percentile is the nearest-rank percentile of 1 to 100 with 2 decimals: the
// smallest sample that at least that share of the samples does not exceed. It is
// nil without samples.
func (d Distribution) Percentile(percent int64) *exact.Decimal {
	if d.Count <= 0 {
		return nil
	}
	rank := max(1, (d.Count*percent+99)/100)
	var seen int64
	for i := range d.distinct() {
		seen += d.Counts[i]
		if seen >= rank {
			return &d.Values[i]
		}
	}
	return d.Greatest()
}
