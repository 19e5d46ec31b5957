package report

import "encoding/json"

// scoreDirection is said wherever a model reads scores: they have been read the
// wrong way round.
const scoreDirection = "100 = safest, 0 = most dangerous"

// Context is what a model is told about the day: at most MaxContextEvents events,
// worst first, and at most MaxContextBytes as JSON. What is over is left out in a
// fixed order: first the mildest events, then lists of gaps, spikes and names.
func (d FactoryDaily) Context(settings Settings) FactoryContext {
	context := FactoryContext{
		SchemaVersion: SchemaVersion, ContextType: "factory_daily_report",
		FactoryID: d.FactoryID, ReportDate: d.ReportDate, Timezone: d.Timezone, Status: d.Status,
		ScoreDirection: scoreDirection, OverallStatus: d.OverallStatus, CollectionStatus: d.CollectionStatus,
		Window: d.Window, FactoryProfile: d.FactoryProfile, DataQuality: d.DataQuality, Risk: d.Risk,
		FactoryState: d.FactoryState, Infra: d.Infra, Pipeline: d.Pipeline, Snapshot: d.Snapshot,
		Events:            d.Events[:min(settings.MaxContextEvents, len(d.Events))],
		RecommendedChecks: d.RecommendedChecks, DataLimitations: d.DataLimitations, Thresholds: d.Thresholds,
	}
	context.count(d)
	for _, shrink := range []func(*FactoryContext) bool{
		(*FactoryContext).dropEvent, (*FactoryContext).dropGap, (*FactoryContext).dropSpike,
		(*FactoryContext).dropWorkload, (*FactoryContext).dropNode,
	} {
		for context.size() > settings.MaxContextBytes && shrink(&context) {
			context.count(d)
		}
	}
	return context
}

func (c *FactoryContext) count(d FactoryDaily) {
	c.EventsOmittedCount = d.EventCount - int64(len(c.Events))
}

// size is the length as JSON.
func (c *FactoryContext) size() int {
	body, err := json.Marshal(c)
	if err != nil { // numbers, times and strings always marshal
		return 0
	}
	return len(body)
}

func (c *FactoryContext) dropEvent() bool { return dropLast(&c.Events) }
func (c *FactoryContext) dropGap() bool   { return dropLast(&c.DataQuality.GapWindows) }
func (c *FactoryContext) dropSpike() bool { return dropLast(&c.FactoryState.SpikeEvents) }
func (c *FactoryContext) dropWorkload() bool {
	return dropLast(&c.Infra.UnhealthyWorkloads)
}
func (c *FactoryContext) dropNode() bool { return dropLast(&c.Infra.NotReadyNodes) }

// dropLast shortens a list without touching the elements that others share; it
// tells whether there was anything to drop.
func dropLast[T any](list *[]T) bool {
	if len(*list) == 0 {
		return false
	}
	*list = (*list)[: len(*list)-1 : len(*list)-1]
	return true
}
