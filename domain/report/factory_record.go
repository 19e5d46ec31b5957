package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/domain/exact"
	"millrace/domain/factory"
)

// valuePlaces are the decimals that measurements are kept with, as the processor
// keeps them.
const valuePlaces = 4

// Bounds of what an object may say; beyond them it is broken.
var (
	valueLimit = exact.FromInt(1_000_000_000)
	fullScore  = exact.FromInt(100)
)

const (
	countLimit = 1_000_000_000
	maxCauses  = 20
)

// errBroken marks an object that breaks a rule of its dataset.
var errBroken = errors.New("broken object")

// head is the part that the objects of every dataset share.
type head struct {
	SourceMessageID string `json:"source_message_id"`
	MessageID       string `json:"message_id"`
	SK              string `json:"sk"`
	FactoryID       string `json:"factory_id"`
	SourceTimestamp string `json:"source_timestamp"`
	ProcessedAt     string `json:"processed_at"`
	UpdatedAt       string `json:"updated_at"`
}

// when is the object's time: of the source, else of its processing, else of its
// update. The first one that is there must be an instant.
func (h head) when() (time.Time, error) {
	return factory.ParseInstant(cmp.Or(h.SourceTimestamp, h.ProcessedAt, h.UpdatedAt))
}

// messageID is the id that evidence names; empty when it isn't safe to show.
func (h head) messageID() string {
	id := cmp.Or(h.SourceMessageID, h.MessageID)
	if factory.CheckMessageID(id) != nil {
		return ""
	}
	return id
}

// record is an object of a dataset as far as a report needs it.
type record[T any] struct {
	at        time.Time
	messageID string
	value     T
	// processedAt and digest choose between objects of one identity, whatever the
	// order in which they come.
	processedAt string
	digest      [sha256.Size]byte
}

// preferredTo tells which of two objects of one identity counts: the one that was
// processed later.
func (r record[T]) preferredTo(other record[T]) bool {
	return cmp.Or(cmp.Compare(r.processedAt, other.processedAt), bytes.Compare(r.digest[:], other.digest[:])) > 0
}

// records are a dataset's objects by identity.
type records[T any] map[string]record[T]

// add tells whether the object has an identity that was not there yet.
func (r records[T]) add(h head, at time.Time, body []byte, value T) bool {
	added := record[T]{at: at, messageID: h.messageID(), value: value, processedAt: h.ProcessedAt, digest: sha256.Sum256(body)}
	identity := cmp.Or(h.SourceMessageID, h.MessageID, h.SK, h.UpdatedAt)
	if identity == "" {
		identity = hex.EncodeToString(added.digest[:])
	}
	known, duplicate := r[identity]
	if !duplicate || added.preferredTo(known) {
		r[identity] = added
	}
	return !duplicate
}

// sorted are the objects by time.
func (r records[T]) sorted() []record[T] {
	list := make([]record[T], 0, len(r))
	for _, one := range r {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b record[T]) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.messageID, b.messageID), bytes.Compare(a.digest[:], b.digest[:]))
	})
	return list
}

// stateValue is what a factory_state object measured; nil is not measured.
type stateValue struct {
	temperature, humidity, pressure *exact.Decimal
	fire, fall, bend                *exact.Decimal
	abnormalSound                   bool
}

type stateObject struct {
	head
	Data *struct {
		Temperature   *exact.Decimal `json:"temperature_celsius"`
		Humidity      *exact.Decimal `json:"humidity_percent"`
		Pressure      *exact.Decimal `json:"pressure_hpa"`
		Fire          *exact.Decimal `json:"fire_score"`
		Fall          *exact.Decimal `json:"fall_score"`
		Bend          *exact.Decimal `json:"bend_score"`
		AbnormalSound string         `json:"abnormal_sound"`
	} `json:"data"`
}

func (o stateObject) value() (stateValue, error) {
	if o.Data == nil {
		return stateValue{}, fmt.Errorf("data is missing: %w", errBroken)
	}
	value := stateValue{
		temperature: o.Data.Temperature, humidity: o.Data.Humidity, pressure: o.Data.Pressure,
		fire: o.Data.Fire, fall: o.Data.Fall, bend: o.Data.Bend,
		abnormalSound: o.Data.AbnormalSound != "" && o.Data.AbnormalSound != factory.NoSound,
	}
	return value, checkNumbers(value.temperature, value.humidity, value.pressure, value.fire, value.fall, value.bend)
}

// riskValue is a score and what was said about it.
type riskValue struct {
	score    exact.Decimal
	causes   []string
	pipeline string
}

type riskObject struct {
	head
	Risk *struct {
		Score     *exact.Decimal `json:"score"`
		TopCauses []struct {
			Field string `json:"field"`
		} `json:"top_causes"`
	} `json:"risk"`
	PipelineStatus struct {
		Status string `json:"status"`
	} `json:"pipeline_status"`
}

func (o riskObject) value() (riskValue, error) {
	if o.Risk == nil || o.Risk.Score == nil {
		return riskValue{}, fmt.Errorf("risk.score is missing: %w", errBroken)
	}
	if err := checkNumbers(o.Risk.Score); err != nil {
		return riskValue{}, err
	}
	value := riskValue{score: *o.Risk.Score, pipeline: o.PipelineStatus.Status}
	if value.score.Sign() < 0 || fullScore.Less(value.score) {
		return riskValue{}, fmt.Errorf("risk.score is beyond 0 to 100: %w", errBroken)
	}
	for _, cause := range o.Risk.TopCauses {
		name := safeName(cause.Field)
		if name != "" && len(value.causes) < maxCauses && !slices.Contains(value.causes, name) {
			value.causes = append(value.causes, name)
		}
	}
	return value, nil
}

// infraValue is what an infra_state object says about its cluster.
type infraValue struct {
	nodesTotal, nodesNotReady   int64
	podsTotal, workloadsBad     int64
	notReadyNodes, badWorkloads []string
	restarts                    map[string]int64
}

type infraObject struct {
	head
	Data *struct {
		NodesTotal int64 `json:"nodes_total"`
		NodesReady int64 `json:"nodes_ready"`
		PodsTotal  int64 `json:"pods_total"`
		Nodes      []struct {
			NodeID string `json:"node_id"`
			Ready  bool   `json:"ready"`
			Status string `json:"status"`
		} `json:"nodes"`
		Workloads []struct {
			Namespace    string `json:"namespace"`
			Name         string `json:"name"`
			Status       string `json:"status"`
			Ready        bool   `json:"ready"`
			RestartCount int64  `json:"restart_count"`
		} `json:"workloads"`
	} `json:"data"`
}

// finished are the states in which a pod rightly is not ready any more.
var finished = []string{"Succeeded", "Completed"}

func (o infraObject) value() (infraValue, error) {
	if o.Data == nil {
		return infraValue{}, fmt.Errorf("data is missing: %w", errBroken)
	}
	value := infraValue{nodesTotal: o.Data.NodesTotal, podsTotal: o.Data.PodsTotal, restarts: map[string]int64{}}
	counts := []int64{o.Data.NodesTotal, o.Data.NodesReady, o.Data.PodsTotal}
	for _, node := range o.Data.Nodes {
		if !node.Ready && node.Status != "Ready" {
			value.notReadyNodes = append(value.notReadyNodes, nameOr(node.NodeID))
		}
	}
	for _, workload := range o.Data.Workloads {
		name := workloadName(workload.Namespace, workload.Name)
		if !workload.Ready && !slices.Contains(finished, workload.Status) {
			value.badWorkloads = append(value.badWorkloads, name)
		}
		value.restarts[name] = max(value.restarts[name], workload.RestartCount)
		counts = append(counts, workload.RestartCount)
	}
	value.nodesTotal = max(value.nodesTotal, int64(len(o.Data.Nodes)))
	value.nodesNotReady = max(int64(len(value.notReadyNodes)), o.Data.NodesTotal-o.Data.NodesReady)
	value.podsTotal = max(value.podsTotal, int64(len(o.Data.Workloads)))
	value.workloadsBad = int64(len(value.badWorkloads))
	value.notReadyNodes, value.badWorkloads = distinct(value.notReadyNodes), distinct(value.badWorkloads)
	return value, checkCounts(counts)
}

type snapshotObject struct {
	head
	EnvironmentType string `json:"environment_type"`
	FactoryState    struct {
		Temperature *exact.Decimal `json:"temperature_celsius"`
		Humidity    *exact.Decimal `json:"humidity_percent"`
		Pressure    *exact.Decimal `json:"pressure_hpa"`
	} `json:"factory_state"`
	InfraState struct {
		NodesTotal *int64 `json:"nodes_total"`
		NodesReady *int64 `json:"nodes_ready"`
		PodsReady  *int64 `json:"pods_ready"`
		PodsTotal  *int64 `json:"pods_total"`
	} `json:"infra_state"`
	Risk struct {
		Score *exact.Decimal `json:"score"`
		Level string         `json:"level"`
	} `json:"risk"`
	PipelineStatus struct {
		Status string `json:"status"`
	} `json:"pipeline_status"`
}

func (o snapshotObject) value() (FinalState, error) {
	final := FinalState{
		EnvironmentType: safeName(o.EnvironmentType),
		RiskScore:       o.Risk.Score, RiskLevel: safeName(o.Risk.Level), PipelineStatus: safeName(o.PipelineStatus.Status),
		TemperatureCelsius: o.FactoryState.Temperature, HumidityPercent: o.FactoryState.Humidity, PressureHPA: o.FactoryState.Pressure,
		NodesReady: o.InfraState.NodesReady, NodesTotal: o.InfraState.NodesTotal,
		PodsReady: o.InfraState.PodsReady, PodsTotal: o.InfraState.PodsTotal,
	}
	var counts []int64
	for _, count := range []*int64{final.NodesReady, final.NodesTotal, final.PodsReady, final.PodsTotal} {
		if count != nil {
			counts = append(counts, *count)
		}
	}
	if err := checkCounts(counts); err != nil {
		return final, err
	}
	return final, checkNumbers(final.RiskScore, final.TemperatureCelsius, final.HumidityPercent, final.PressureHPA)
}

// checkNumbers refuses what is no measurement and rounds the others in place.
func checkNumbers(numbers ...*exact.Decimal) error {
	for _, number := range numbers {
		if number == nil {
			continue
		}
		if number.AtLeast(valueLimit) || number.Add(valueLimit).Sign() <= 0 {
			return fmt.Errorf("a number is out of range: %w", errBroken)
		}
		*number = number.Round(valuePlaces)
	}
	return nil
}

func checkCounts(counts []int64) error {
	for _, count := range counts {
		if count < 0 || count > countLimit {
			return fmt.Errorf("a count is out of range: %w", errBroken)
		}
	}
	return nil
}

// object is how the objects of a dataset are read.
type object[T any] interface {
	value() (T, error)
	common() head
}

func (h head) common() head { return h }

// readObject reads an object's head and value. Where only the value is broken
// the head still is known.
func readObject[O object[T], T any](body []byte) (head, T, error) {
	var read O
	var none T
	if err := json.Unmarshal(body, &read); err != nil {
		var h head
		if json.Unmarshal(body, &h) != nil {
			h = head{}
		}
		return h, none, fmt.Errorf("read object: %w", err)
	}
	value, err := read.value()
	return read.common(), value, err
}

// distinct are the names once each, sorted.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
