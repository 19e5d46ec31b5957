// Package jobs has a simulated factory do the jobs that it is told: what a job
// changes shows in what the factory publishes from then on. Each job is done at
// most once, whatever happens, and answered until the broker has confirmed.
package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"millrace/edge/simulator"
)

// Operations of jobs.
const (
	opAdjust = "adjust"
	opReset  = "reset"
	opFail   = "fail"
	opEcho   = "echo"
)

// operation is the content of a job.
type operation struct {
	Operation   string           `json:"operation"`
	Temperature *simulator.Centi `json:"temperature_offset_c"`
	Humidity    *simulator.Centi `json:"humidity_offset_percent"`
	Pressure    *simulator.Centi `json:"pressure_offset_hpa"`
	Text        *string          `json:"text"`
}

// maxOffset bounds what a job can add to a reading.
const maxOffset = 100_00

// parseOperation reads the content of a job; fields that are not known are
// refused, for a job that is half understood must not be done.
func parseOperation(content []byte) (operation, error) {
	var op operation
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&op); err != nil {
		return operation{}, fmt.Errorf("content: must be a JSON object of known fields: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return operation{}, errors.New("content: must be one JSON object")
	}
	return op, op.check()
}

func (op operation) check() error {
	offsets := 0
	for _, offset := range []*simulator.Centi{op.Temperature, op.Humidity, op.Pressure} {
		if offset == nil {
			continue
		}
		offsets++
		if *offset < -maxOffset || *offset > maxOffset {
			return errors.New("content: offsets must be -100 to 100")
		}
	}
	switch op.Operation {
	case opAdjust:
		if offsets == 0 || op.Text != nil {
			return errors.New("content: adjust needs temperature_offset_c, humidity_offset_percent or pressure_offset_hpa, and nothing else")
		}
	case opReset:
		if offsets > 0 || op.Text != nil {
			return errors.New("content: reset takes nothing else")
		}
	case opFail, opEcho:
		if offsets > 0 {
			return fmt.Errorf("content: %s takes text only", op.Operation)
		}
	default:
		return fmt.Errorf("content: operation %.40q must be %s", op.Operation, strings.Join([]string{opAdjust, opReset, opFail, opEcho}, ", "))
	}
	return nil
}

func (op operation) text() string {
	if op.Text == nil {
		return ""
	}
	return *op.Text
}

// apply is the adjustment after an operation. Offsets are set and not added, so
// that doing it twice makes no difference.
func (op operation) apply(a simulator.Adjustment) simulator.Adjustment {
	if op.Operation == opReset {
		return simulator.Adjustment{}
	}
	for _, f := range []struct {
		to   *simulator.Centi
		from *simulator.Centi
	}{{&a.Temperature, op.Temperature}, {&a.Humidity, op.Humidity}, {&a.Pressure, op.Pressure}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return a
}
