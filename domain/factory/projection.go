package factory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Processed is a processed object: the normalised message, or the risk that
// followed from it. Late tells that something newer was stored already when the
// message was first processed.
type Processed struct {
	SourceMessageID string          `json:"source_message_id"`
	FactoryID       string          `json:"factory_id"`
	SourceTimestamp time.Time       `json:"source_timestamp"`
	ProcessedAt     Millis          `json:"processed_at"`
	Data            any             `json:"data"`
	Risk            *Risk           `json:"risk,omitempty"`
	PipelineStatus  *PipelineStatus `json:"pipeline_status,omitempty"`
	Late            bool            `json:"late,omitempty"`
}

// Data is what a block's processed object carries.
func (b Block) Data() any {
	switch {
	case b.FactoryState != nil:
		return b.FactoryState
	case b.InfraState != nil:
		return b.InfraState
	}
	return b.ImageSnapshot
}

// ReadProcessed is the block of a stored processed object of a data dataset,
// which is named like its source type.
func ReadProcessed(body []byte, source SourceType) (Block, error) {
	var block Block
	var err error
	switch source {
	case SourceFactoryState:
		block.FactoryState, err = processedData[FactoryState](body)
	case SourceInfraState:
		block.InfraState, err = processedData[InfraState](body)
	case SourceImageSnapshot:
		block.ImageSnapshot, err = processedData[ImageSnapshot](body)
	default:
		err = invalid("source_type", "must be factory_state, infra_state or image_snapshot")
	}
	return block, err
}

func processedData[T any](body []byte) (*T, error) {
	var object struct {
		Data *T `json:"data"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("read processed object: %w", err)
	}
	if object.Data == nil {
		return nil, invalid("data", "is required")
	}
	return object.Data, nil
}

// ProcessedObject is the object of a message processed at now. An infra_state
// object also says how fresh that message made the pipeline.
func ProcessedObject(m Message, block Block, latest *Latest, now time.Time, late bool) Processed {
	object := Processed{
		SourceMessageID: m.MessageID,
		FactoryID:       m.FactoryID,
		SourceTimestamp: m.SourceTimestamp,
		ProcessedAt:     MillisOf(now),
		Data:            block.Data(),
		Late:            late,
	}
	if block.InfraState != nil {
		var lastFactory *time.Time
		if latest != nil {
			lastFactory = latest.LastFactoryStateAt
		}
		pipeline := EvaluatePipeline(&m.SourceTimestamp, lastFactory, now)
		object.PipelineStatus = &pipeline
	}
	return object
}

// RiskObject is the risk_score object of the committed state that a
// factory_state message led to. It carries neither calculation time nor version.
func RiskObject(committed Latest) Processed {
	risk := *committed.Risk
	risk.CalculatedAt, risk.CalculationVersion = nil, ""
	return Processed{
		SourceMessageID: committed.FactoryState.MessageID,
		FactoryID:       committed.FactoryID,
		SourceTimestamp: committed.FactoryState.SourceTimestamp,
		ProcessedAt:     committed.UpdatedAt,
		Data:            struct{}{},
		Risk:            &risk,
		PipelineStatus:  committed.PipelineStatus,
	}
}

// Refusal is the quarantine object of a body that can never be processed.
type Refusal struct {
	Field      string    `json:"field"`
	Rule       string    `json:"rule"`
	Topic      string    `json:"topic"`
	RawKey     string    `json:"raw_key"`
	ReceivedAt time.Time `json:"received_at"`
	Body       []byte    `json:"body_base64"`
}

// EncodeJSON writes a document as the stores keep it: compact, non-ASCII and
// HTML characters as they are.
func EncodeJSON(document any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
