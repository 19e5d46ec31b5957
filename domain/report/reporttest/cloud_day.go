package reporttest

import (
	"bytes"
	"iter"
	"strings"
	"time"

	"millrace/domain/cloudinfra"
	"millrace/domain/factory"
)

// CloudDay is a day of snapshots of the cloud infrastructure: a fast one each
// minute and a slow one each five minutes.
type CloudDay struct {
	// Start and End bound the day, half open.
	Start, End time.Time
	// Calm leaves out every drill and every odd object.
	Calm bool
}

// Nominal distances of snapshots, and how long after the minute one is taken.
const (
	fastEvery = time.Minute
	slowEvery = 5 * time.Minute
	takenAt   = 350 * time.Millisecond
)

// Objects are the snapshot objects of the day, made by the rules that make the
// real ones.
func (d CloudDay) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for at, n := d.Start.UTC(), 0; at.Before(d.End); at, n = at.Add(fastEvery), n+1 {
			for _, object := range d.snapshots(at, n) {
				if !yield(object) {
					return
				}
			}
		}
		if d.Calm {
			return
		}
		for _, object := range d.odd() {
			if !yield(object) {
				return
			}
		}
	}
}

func (d CloudDay) snapshots(at time.Time, n int) []Object {
	offset, taken := at.Sub(d.Start), at.Add(takenAt)
	var made []Object
	if !d.in(FastGap, offset) {
		made = append(made, d.fastObject(taken, offset, n))
	}
	if offset%slowEvery == 0 && !d.in(SlowGap, offset) {
		slow := cloudinfra.EvaluateSlow(d.slow(taken, offset, n), cloudinfra.DefaultThresholds(), taken)
		made = append(made, snapshot(cloudinfra.Half{At: factory.MillisOf(taken), Slow: &slow}))
	}
	return made
}

func (d CloudDay) fastObject(taken time.Time, offset time.Duration, n int) Object {
	fast := cloudinfra.EvaluateFast(d.fast(taken, offset, n), cloudinfra.DefaultThresholds())
	return snapshot(cloudinfra.Half{At: factory.MillisOf(taken), Fast: &fast})
}

func snapshot(half cloudinfra.Half) Object {
	overall := (cloudinfra.Latest{}).With(half).OverallStatus
	history := half.History(overall, time.Hour)
	return Object{Key: half.Track().SnapshotKey(half.At), Dataset: string(half.Track()), Body: encoded(history.Snapshot())}
}

// odd are objects that a reader must cope with: one cut in the middle, one twice
// under the older leaf, and one of another schema.
func (d CloudDay) odd() []Object {
	at := d.Start.Add(BrokenAt + takenAt).UTC()
	object := d.fastObject(at, BrokenAt, 0)
	folder := object.Key[:strings.LastIndex(object.Key, "/")+1]
	other := bytes.Replace(object.Body, []byte(cloudinfra.SchemaVersion), []byte("cloud-infra-status-v9"), 1)
	return []Object{
		{Key: folder + "broken.json", Dataset: object.Dataset, Body: object.Body[:len(object.Body)/2]},
		{Key: folder + at.Format("2006-01-02T15-04-05") + "-350Z.json", Dataset: object.Dataset, Body: d.fastObject(at, BrokenAt, 16*60).Body},
		{Key: folder + "other-schema.json", Dataset: object.Dataset, Body: other},
	}
}
