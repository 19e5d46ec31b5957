package factory

import "time"

// Latest is the current state of a factory: the item FACTORY#{id}/LATEST. With
// another sort key and a ttl the same document is a HISTORY#STATE item, and
// without the ttl a state_snapshot object.
type Latest struct {
	PK                  string          `json:"pk"`
	SK                  string          `json:"sk"`
	FactoryID           string          `json:"factory_id"`
	SchemaVersion       string          `json:"schema_version"`
	EnvironmentType     string          `json:"environment_type,omitempty"`
	Rev                 int64           `json:"rev"`
	MessageID           string          `json:"message_id,omitempty"`
	FactoryState        *FactoryState   `json:"factory_state,omitempty"`
	InfraState          *InfraState     `json:"infra_state,omitempty"`
	Risk                *Risk           `json:"risk,omitempty"`
	PipelineStatus      *PipelineStatus `json:"pipeline_status,omitempty"`
	LastFactoryStateAt  *time.Time      `json:"last_factory_state_at,omitempty"`
	LastInfraStateAt    *time.Time      `json:"last_infra_state_at,omitempty"`
	LatestImageSnapshot *ImageSnapshot  `json:"latest_image_snapshot,omitempty"`
	LastImageSnapshotAt *time.Time      `json:"last_image_snapshot_at,omitempty"`
	UpdatedAt           Millis          `json:"updated_at"`
	TTL                 int64           `json:"ttl,omitempty"`
}

// SchemaVersion is the version of the documents written here.
const SchemaVersion = "0.1.0"

// History is the HISTORY#STATE item of this state; it expires after keep.
func (l Latest) History(keep time.Duration) Latest {
	l.SK = HistorySK(l.UpdatedAt)
	l.TTL = l.UpdatedAt.Add(keep).Unix()
	return l
}

// Snapshot is the body of the state_snapshot object of this state: the history
// item without its ttl.
func (l Latest) Snapshot() Latest {
	l.SK = HistorySK(l.UpdatedAt)
	l.TTL = 0
	return l
}

// Standing tells how an arriving message relates to what is stored.
type Standing string

// The standings of a message.
const (
	// Newer means that the message becomes the factory's current state.
	Newer Standing = "newer"
	// Duplicate means that the message is the one already stored.
	Duplicate Standing = "duplicate"
	// Late means that something newer is stored already.
	Late Standing = "late"
)

// StandingOf compares a message with the stored state; latest is nil for a
// factory never seen before.
func StandingOf(m Message, latest *Latest) Standing {
	stored := latest.order(m.SourceType)
	if stored == nil {
		return Newer
	}
	switch order := m.ID().Compare(*stored); {
	case order > 0:
		return Newer
	case order == 0:
		return Duplicate
	}
	return Late
}

// order is the place of the stored block of a source type, nil without one.
func (l *Latest) order(source SourceType) *Order {
	if l == nil {
		return nil
	}
	var order Order
	switch {
	case source == SourceFactoryState && l.FactoryState != nil:
		order = l.FactoryState.ID()
	case source == SourceInfraState && l.InfraState != nil:
		order = l.InfraState.ID()
	case source == SourceImageSnapshot && l.LatestImageSnapshot != nil:
		order = l.LatestImageSnapshot.ID()
	default:
		return nil
	}
	return &order
}

// Block is a message's normalised payload; exactly one field is set.
type Block struct {
	FactoryState  *FactoryState
	InfraState    *InfraState
	ImageSnapshot *ImageSnapshot
}

// Normalise reads the payload of a message processed at now. Its error is an
// *InvalidError.
func Normalise(m Message, now time.Time) (Block, error) {
	switch m.SourceType {
	case SourceFactoryState:
		state := NormaliseFactoryState(m)
		return Block{FactoryState: &state}, nil
	case SourceInfraState:
		state := NormaliseInfraState(m)
		return Block{InfraState: &state}, nil
	default:
		snapshot, err := NormaliseImageSnapshot(m, MillisOf(now))
		if err != nil {
			return Block{}, err
		}
		return Block{ImageSnapshot: &snapshot}, nil
	}
}

// Apply is the state after a newer message, processed at now; stored is nil for
// a factory never seen before. It does not change stored.
func Apply(stored *Latest, m Message, block Block, now time.Time) Latest {
	next := stored.next(m.FactoryID, now)
	next.SchemaVersion = SchemaVersion
	next.MessageID = m.MessageID
	if m.EnvironmentType != "" {
		next.EnvironmentType = m.EnvironmentType
	}
	at := m.SourceTimestamp
	switch {
	case block.FactoryState != nil:
		next.FactoryState, next.LastFactoryStateAt = block.FactoryState, &at
	case block.InfraState != nil:
		infra := block.InfraState.fit()
		next.InfraState, next.LastInfraStateAt = &infra, &at
	default:
		next.LatestImageSnapshot, next.LastImageSnapshotAt = block.ImageSnapshot, &at
		return next
	}
	next.judge(now)
	return next
}

// Refresh is the state judged again at now, without any new message: a silent
// factory must not look healthy for ever.
func Refresh(stored Latest, now time.Time) Latest {
	next := stored.next(stored.FactoryID, now)
	next.MessageID = ""
	next.judge(now)
	return next
}

// next is a copy of l ready for the next revision. Its updated_at is later than
// l's whatever the clocks say, so that history keys are unique and ordered.
func (l *Latest) next(factoryID string, now time.Time) Latest {
	if l == nil {
		return Latest{PK: PK(factoryID), SK: LatestSK, FactoryID: factoryID, Rev: 1, UpdatedAt: MillisOf(now)}
	}
	next := *l
	next.Rev++
	next.UpdatedAt = MillisOf(now)
	if earliest := l.UpdatedAt.Add(time.Millisecond); next.UpdatedAt.Before(earliest) {
		next.UpdatedAt = MillisOf(earliest)
	}
	return next
}

func (l *Latest) judge(now time.Time) {
	pipeline := EvaluatePipeline(l.LastInfraStateAt, l.LastFactoryStateAt, now)
	l.PipelineStatus = &pipeline
	if l.FactoryState == nil {
		return
	}
	risk := EvaluateRisk(*l.FactoryState, l.InfraState, pipeline)
	calculatedAt := l.UpdatedAt
	risk.CalculatedAt, risk.CalculationVersion = &calculatedAt, RiskVersion
	l.Risk = &risk
}
