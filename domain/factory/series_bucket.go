package factory

import (
	"cmp"
	"slices"
	"time"

	"millrace/domain/exact"
)

// BucketPoint is an element of a long history: one bucket, or several merged
// into one. Every value of an empty bucket is null. SampleCount is the number of
// messages in it.
type BucketPoint struct {
	Timestamp     time.Time `json:"timestamp"`
	BucketStart   time.Time `json:"bucket_start"`
	BucketEnd     Millis    `json:"bucket_end"`
	BucketMinutes int64     `json:"bucket_minutes"`
	IsBucket      bool      `json:"is_bucket"`
	SampleCount   int64     `json:"sample_count"`
	bucketRisk
	bucketClimate
	bucketAI
	bucketUsage
	NodesMean []NodeMean    `json:"nodes_mean"`
	Quality   *GraphQuality `json:"quality"`
}

type bucketRisk struct {
	RiskScore    *exact.Decimal `json:"risk_score"`
	RiskScoreAvg *exact.Decimal `json:"risk_score_avg"`
	RiskScoreMin *exact.Decimal `json:"risk_score_min"`
	RiskScoreMax *exact.Decimal `json:"risk_score_max"`
}

type bucketClimate struct {
	TemperatureCelsiusAvg *exact.Decimal `json:"temperature_celsius_avg"`
	TemperatureCelsiusMin *exact.Decimal `json:"temperature_celsius_min"`
	TemperatureCelsiusMax *exact.Decimal `json:"temperature_celsius_max"`
	HumidityPercentAvg    *exact.Decimal `json:"humidity_percent_avg"`
	HumidityPercentMin    *exact.Decimal `json:"humidity_percent_min"`
	HumidityPercentMax    *exact.Decimal `json:"humidity_percent_max"`
	PressureHPAAvg        *exact.Decimal `json:"pressure_hpa_avg"`
	PressureHPAMin        *exact.Decimal `json:"pressure_hpa_min"`
	PressureHPAMax        *exact.Decimal `json:"pressure_hpa_max"`
}

type bucketAI struct {
	FireScore    *exact.Decimal `json:"fire_score"`
	FireScoreMax *exact.Decimal `json:"fire_score_max"`
	FallScore    *exact.Decimal `json:"fall_score"`
	FallScoreMax *exact.Decimal `json:"fall_score_max"`
	BendScore    *exact.Decimal `json:"bend_score"`
	BendScoreMax *exact.Decimal `json:"bend_score_max"`
	AIMaxScore   *exact.Decimal `json:"ai_max_score"`
}

type bucketUsage struct {
	CPUUsagePercentMean    *exact.Decimal `json:"cpu_usage_percent_mean"`
	MemoryUsagePercentMean *exact.Decimal `json:"memory_usage_percent_mean"`
	DiskUsagePercentLast   *exact.Decimal `json:"disk_usage_percent_last"`
}

// NodeMean is the usage of one node in a bucket: the mean of CPU and memory, the
// last value of disk.
type NodeMean struct {
	NodeID             string         `json:"node_id"`
	CPUUsagePercent    *exact.Decimal `json:"cpu_usage_percent"`
	MemoryUsagePercent *exact.Decimal `json:"memory_usage_percent"`
	DiskUsagePercent   *exact.Decimal `json:"disk_usage_percent"`
}

// BucketSeries is the answer to a query of buckets, oldest first. Merged
// elements lie on the clock (10 or 20 minutes), so that two calls agree. With
// since, an element is returned whole when any of its buckets is newer. A bucket
// that was never written is no element.
func BucketSeries(graphs []Graph, plan ReadPlan) []BucketPoint {
	graphs = slices.DeleteFunc(slices.Clone(graphs), func(g Graph) bool {
		sk := GraphSK(g.BucketStart)
		return sk < plan.FromSK || sk > plan.ToSK
	})
	slices.SortStableFunc(graphs, func(a, b Graph) int { return a.BucketStart.Compare(b.BucketStart) })
	points := make([]BucketPoint, 0, len(graphs))
	for len(graphs) > 0 {
		start, count := plan.elementOf(graphs)
		group := graphs[:count]
		graphs = graphs[count:]
		if !group[count-1].BucketStart.After(plan.since) {
			continue
		}
		if plan.Merge <= 1 {
			points = append(points, bucketPoint(&group[0]))
			continue
		}
		points = append(points, mergedPoint(group, start, plan.Merge))
	}
	return newest(points, plan.Limit)
}

// elementOf is the start of the first graph's element and how many of the graphs
// belong to it.
func (p ReadPlan) elementOf(graphs []Graph) (start time.Time, count int) {
	length := time.Duration(max(1, p.Merge)) * BucketLength
	start = graphs[0].BucketStart.UTC().Truncate(length)
	for count < len(graphs) && graphs[count].BucketStart.Before(start.Add(length)) {
		count++
	}
	return start, count
}

func bucketPoint(g *Graph) BucketPoint {
	point := BucketPoint{
		Timestamp: g.BucketStart, BucketStart: g.BucketStart, BucketEnd: g.BucketEnd,
		BucketMinutes: g.BucketMinutes, IsBucket: true, SampleCount: g.Quality.SourceCount,
		NodesMean: []NodeMean{}, Quality: &g.Quality,
	}
	if g.Quality.IsEmpty {
		return point
	}
	point.RiskScoreAvg, point.RiskScoreMin, point.RiskScoreMax = g.Risk.Score.span()
	point.RiskScore = point.RiskScoreAvg
	point.TemperatureCelsiusAvg, point.TemperatureCelsiusMin, point.TemperatureCelsiusMax = g.Sensor.TemperatureCelsius.span()
	point.HumidityPercentAvg, point.HumidityPercentMin, point.HumidityPercentMax = g.Sensor.HumidityPercent.span()
	point.PressureHPAAvg, point.PressureHPAMin, point.PressureHPAMax = g.Sensor.PressureHPA.span()
	point.FireScore, point.FireScoreMax = g.AIDetection.ByType.FireScore.meanAndMax()
	point.FallScore, point.FallScoreMax = g.AIDetection.ByType.FallScore.meanAndMax()
	point.BendScore, point.BendScoreMax = g.AIDetection.ByType.BendScore.meanAndMax()
	point.AIMaxScore = g.AIDetection.MaxScore
	point.CPUUsagePercentMean, point.MemoryUsagePercentMean, point.DiskUsagePercentLast = g.Infra.readings()
	for _, node := range g.Infra.Nodes {
		mean := NodeMean{NodeID: node.NodeID}
		mean.CPUUsagePercent, mean.MemoryUsagePercent, mean.DiskUsagePercent = node.readings()
		point.NodesMean = append(point.NodesMean, mean)
	}
	return point
}

func (s *SummaryAt[T]) span() (mean, least, greatest *exact.Decimal) {
	if s == nil {
		return nil, nil, nil
	}
	return &s.Mean, &s.Min, &s.Max
}

func (s *AISummary) meanAndMax() (mean, greatest *exact.Decimal) {
	if s == nil {
		return nil, nil
	}
	return &s.Mean, &s.Max
}

func (u Usage) readings() (cpu, memory, lastDisk *exact.Decimal) {
	cpu, _, _ = u.CPUUsagePercent.span()
	memory, _, _ = u.MemoryUsagePercent.span()
	if u.DiskUsagePercent != nil {
		lastDisk = &u.DiskUsagePercent.Last
	}
	return cpu, memory, lastDisk
}

// mergedPoint is one element of several buckets: averages weighted by sample
// count, extremes of extremes, the last disk value.
func mergedPoint(group []Graph, start time.Time, merge int) BucketPoint {
	points := make([]BucketPoint, 0, len(group))
	merged := BucketPoint{
		Timestamp: start, BucketStart: start, BucketMinutes: int64(merge) * BucketMinutes, IsBucket: true,
		BucketEnd: MillisOf(start.Add(time.Duration(merge)*BucketLength - time.Millisecond)),
	}
	for i := range group {
		point := bucketPoint(&group[i])
		merged.SampleCount += point.SampleCount
		points = append(points, point)
	}
	merged.mergeRisk(points)
	merged.mergeClimate(points)
	merged.mergeAI(points)
	merged.mergeUsage(points)
	merged.NodesMean = mergedNodes(points)
	return merged
}

func (p *BucketPoint) mergeRisk(points []BucketPoint) {
	p.RiskScoreAvg = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.RiskScoreAvg })
	p.RiskScore = p.RiskScoreAvg
	p.RiskScoreMin = pick(points, exact.Min, func(b *BucketPoint) *exact.Decimal { return b.RiskScoreMin })
	p.RiskScoreMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.RiskScoreMax })
}

func (p *BucketPoint) mergeClimate(points []BucketPoint) {
	p.TemperatureCelsiusAvg = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.TemperatureCelsiusAvg })
	p.TemperatureCelsiusMin = pick(points, exact.Min, func(b *BucketPoint) *exact.Decimal { return b.TemperatureCelsiusMin })
	p.TemperatureCelsiusMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.TemperatureCelsiusMax })
	p.HumidityPercentAvg = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.HumidityPercentAvg })
	p.HumidityPercentMin = pick(points, exact.Min, func(b *BucketPoint) *exact.Decimal { return b.HumidityPercentMin })
	p.HumidityPercentMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.HumidityPercentMax })
	p.PressureHPAAvg = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.PressureHPAAvg })
	p.PressureHPAMin = pick(points, exact.Min, func(b *BucketPoint) *exact.Decimal { return b.PressureHPAMin })
	p.PressureHPAMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.PressureHPAMax })
}

func (p *BucketPoint) mergeAI(points []BucketPoint) {
	p.FireScore = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.FireScore })
	p.FireScoreMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.FireScoreMax })
	p.FallScore = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.FallScore })
	p.FallScoreMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.FallScoreMax })
	p.BendScore = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.BendScore })
	p.BendScoreMax = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.BendScoreMax })
	p.AIMaxScore = pick(points, exact.Max, func(b *BucketPoint) *exact.Decimal { return b.AIMaxScore })
}

func (p *BucketPoint) mergeUsage(points []BucketPoint) {
	p.CPUUsagePercentMean = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.CPUUsagePercentMean })
	p.MemoryUsagePercentMean = weightedMean(points, func(b *BucketPoint) *exact.Decimal { return b.MemoryUsagePercentMean })
	p.DiskUsagePercentLast = pick(points, later, func(b *BucketPoint) *exact.Decimal { return b.DiskUsagePercentLast })
}

// mergedNodes has every node of the buckets, by name: simple means of CPU and
// memory, the last disk value.
func mergedNodes(points []BucketPoint) []NodeMean {
	var all []NodeMean
	for _, point := range points {
		all = append(all, point.NodesMean...)
	}
	slices.SortStableFunc(all, func(a, b NodeMean) int { return cmp.Compare(a.NodeID, b.NodeID) })
	merged := []NodeMean{}
	for len(all) > 0 {
		count := 1
		for count < len(all) && all[count].NodeID == all[0].NodeID {
			count++
		}
		merged = append(merged, NodeMean{
			NodeID:             all[0].NodeID,
			CPUUsagePercent:    simpleMean(all[:count], func(n *NodeMean) *exact.Decimal { return n.CPUUsagePercent }),
			MemoryUsagePercent: simpleMean(all[:count], func(n *NodeMean) *exact.Decimal { return n.MemoryUsagePercent }),
			DiskUsagePercent:   pick(all[:count], later, func(n *NodeMean) *exact.Decimal { return n.DiskUsagePercent }),
		})
		all = all[count:]
	}
	return merged
}
