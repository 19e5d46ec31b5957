package observability

import (
	"fmt"
	"strconv"
	"strings"

	"millrace/domain/exact"
)

// bounds are the upper bounds of the latency histogram in milliseconds: 1-2-5
// from 1 ms to 100 s. What took longer is in a bucket without a bound.
var bounds = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}

// latencyPrefix begins the counters of the histogram.
const latencyPrefix = "lat_"

// overflow is the bucket of what took longer than the greatest bound.
const overflow = latencyPrefix + "inf"

// LatencyCounter is the name of the counter of a duration: lat_{bound} for the
// smallest bound that is not below it.
func LatencyCounter(durationMS exact.Decimal) string {
	for _, bound := range bounds {
		if !exact.FromInt(bound).Less(durationMS) {
			return latencyPrefix + strconv.FormatInt(bound, 10)
		}
	}
	return overflow
}

// Percentile is what a histogram tells of a percentile. The true value, by
// nearest rank, is above Lower and at most Upper, for certain: both are bounds of
// one bucket, so that Value, interpolated between them, is off by less than their
// distance. Bounds grow by 2 or 2.5, so it is off by less than 60 % of Upper, or
// 150 % of Lower, and by less than 1 ms in the first bucket. Upper is nil above
// 100 s; Value is Lower then.
type Percentile struct {
	Value exact.Decimal  `json:"value"`
	Lower exact.Decimal  `json:"lower"`
	Upper *exact.Decimal `json:"upper,omitempty"`
}

// percentilePlaces is the precision of an interpolated percentile.
const percentilePlaces = 3

// Percentile is the p-th percentile in milliseconds, 1 to 100, by nearest rank;
// nil where nothing told its duration.
func (c Counters) Percentile(p int64) *Percentile {
	counts, total := c.latencies()
	if total == 0 {
		return nil
	}
	rank := (total*p + 99) / 100
	var below, lower int64
	for i, count := range counts {
		if below+count < rank {
			below += count
			if i < len(bounds) {
				lower = bounds[i]
			}
			continue
		}
		if i == len(bounds) {
			break
		}
		upper := exact.FromInt(bounds[i])
		share := exact.FromInt((rank-below)*(bounds[i]-lower)).Quo(exact.FromInt(count), percentilePlaces)
		return &Percentile{Value: exact.FromInt(lower).Add(share), Lower: exact.FromInt(lower), Upper: &upper}
	}
	last := exact.FromInt(bounds[len(bounds)-1])
	return &Percentile{Value: last, Lower: last}
}

// latencies are the counts of all buckets, the one without a bound last.
func (c Counters) latencies() (counts []int64, total int64) {
	counts = make([]int64, len(bounds)+1)
	for name, value := range c {
		if i, ok := bucketOf(name); ok {
			count, _ := value.Int64()
			counts[i] += count
			total += count
		}
	}
	return counts, total
}

func bucketOf(counter string) (int, bool) {
	text, found := strings.CutPrefix(counter, latencyPrefix)
	if !found {
		return 0, false
	}
	for i, bound := range bounds {
		if text == fmt.Sprint(bound) {
			return i, true
		}
	}
	return len(bounds), counter == overflow
}
