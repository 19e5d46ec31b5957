package report

import (
	"slices"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

// CloudPoint is the worst of five minutes, for the charts; null was not measured.
type CloudPoint struct {
	At time.Time `json:"at"`
	// Status is 0 normal, 1 unknown, 2 warning, 3 critical.
	Status        *int64         `json:"status"`
	Alb5xx        *exact.Decimal `json:"alb_5xx"`
	NodesNotReady *int64         `json:"nodes_not_ready"`
	PodsNotOK     *int64         `json:"pods_not_ok"`
	// Samples are the fast ones of the five minutes.
	Samples int64 `json:"fast_samples"`
}

// chartRank orders states from well to worst; what is not configured has none.
var chartRank = map[cloudinfra.Status]int64{cloudinfra.Normal: 0, cloudinfra.Unknown: 1, cloudinfra.Warning: 2, cloudinfra.Critical: 3}

func (s cloudSample) point() CloudPoint {
	p := CloudPoint{At: s.at.Truncate(counterWindow)}
	if rank, ok := chartRank[s.status()]; ok {
		p.Status = &rank
	}
	if s.half == CloudFast {
		p.Samples, p.Alb5xx = 1, s.fields.child("backend_runtime").child("alb").number("target_5xx_count_5m")
		return p
	}
	eks := s.fields.child("eks_management")
	nodes, pods := eks.child("nodes"), eks.child("pods")
	if ready, total := nodes.integer("ready"), nodes.integer("total"); ready != nil && total != nil {
		missing := max(0, *total-*ready)
		p.NodesNotReady = &missing
	}
	if pending, failed, lost := pods.integer("pending"), pods.integer("failed"), pods.integer("unknown"); pending != nil || failed != nil || lost != nil {
		bad := cloudValue(pending) + cloudValue(failed) + cloudValue(lost)
		p.PodsNotOK = &bad
	}
	return p
}

func (p CloudPoint) merge(o CloudPoint) CloudPoint {
	p.Status, p.NodesNotReady, p.PodsNotOK = cloudMax(p.Status, o.Status), cloudMax(p.NodesNotReady, o.NodesNotReady), cloudMax(p.PodsNotOK, o.PodsNotOK)
	if p.Alb5xx == nil || (o.Alb5xx != nil && p.Alb5xx.Less(*o.Alb5xx)) {
		p.Alb5xx = o.Alb5xx
	}
	p.Samples += o.Samples
	return p
}

func cloudSeries(samples []cloudSample) []CloudPoint {
	points := make([]CloudPoint, 0, len(samples))
	for _, sample := range samples {
		points = append(points, sample.point())
	}
	return mergeCloudPoints(points)
}

// mergeCloudPoints has one point for each five minutes, in the order of time.
func mergeCloudPoints(points []CloudPoint) []CloudPoint {
	byTime := map[time.Time]CloudPoint{}
	for _, p := range points {
		p.At = p.At.UTC()
		if have, ok := byTime[p.At]; ok {
			p = have.merge(p)
		}
		byTime[p.At] = p
	}
	merged := make([]CloudPoint, 0, len(byTime))
	for _, p := range byTime {
		merged = append(merged, p)
	}
	slices.SortFunc(merged, func(a, b CloudPoint) int { return a.At.Compare(b.At) })
	return merged
}
