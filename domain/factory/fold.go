package factory

import "millrace/domain/exact"

// simpleMean is the mean of the known values, rounded once; nil when none is
// known.
func simpleMean[T any](list []T, value func(*T) *exact.Decimal) *exact.Decimal {
	var sum exact.Decimal
	var count int64
	for i := range list {
		if known := value(&list[i]); known != nil {
			sum, count = sum.Add(*known), count+1
		}
	}
	if count == 0 {
		return nil
	}
	mean := sum.Quo(exact.FromInt(count), graphPlaces)
	return &mean
}

func later(_, b exact.Decimal) exact.Decimal { return b }

// pick folds the known values in time order, nil when none is known.
func pick[T any](list []T, choose func(a, b exact.Decimal) exact.Decimal, value func(*T) *exact.Decimal) *exact.Decimal {
	var chosen *exact.Decimal
	for i := range list {
		known := value(&list[i])
		if known == nil {
			continue
		}
		next := *known
		if chosen != nil {
			next = choose(*chosen, next)
		}
		chosen = &next
	}
	return chosen
}

// weightedMean weighs each known average by its bucket's sample count and rounds
// once; nil when none counts.
func weightedMean(points []BucketPoint, value func(*BucketPoint) *exact.Decimal) *exact.Decimal {
	var sum exact.Decimal
	var weight int64
	for i := range points {
		if known := value(&points[i]); known != nil {
			sum = sum.Add(known.Mul(exact.FromInt(points[i].SampleCount)))
			weight += points[i].SampleCount
		}
	}
	if weight == 0 {
		return nil
	}
	mean := sum.Quo(exact.FromInt(weight), graphPlaces)
	return &mean
}
