package factory

// SourceType tells what a telemetry message carries; it is the third level of
// its topic.
type SourceType string

// The source types of the IoT message contract.
const (
	SourceFactoryState  SourceType = "factory_state"
	SourceInfraState    SourceType = "infra_state"
	SourceImageSnapshot SourceType = "image_snapshot"
)

// SourceTypes lists every source type, in the order of the contract.
var SourceTypes = []SourceType{SourceFactoryState, SourceInfraState, SourceImageSnapshot}

// Valid tells whether s is a source type of the contract.
func (s SourceType) Valid() bool {
	switch s {
	case SourceFactoryState, SourceInfraState, SourceImageSnapshot:
		return true
	}
	return false
}
