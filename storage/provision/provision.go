// Package provision compares the tables, the bucket and the queues of the
// product with what they must be, and creates what is missing when it is told
// to. It never deletes, and leaves alone what differs: that is the owner's to
// decide.
package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/smithy-go"
)

// State is what became of one part.
type State string

// The states of a part.
const (
	// OK means that the part is what it must be.
	OK State = "ok"
	// Created means that the part was missing and is there now.
	Created State = "created"
	// Missing means that the part is not there, and was not to be created.
	Missing State = "missing"
	// Drift means that the part is there and is something else.
	Drift State = "drift"
	// Unsupported means that the endpoint does not know such a part.
	Unsupported State = "unsupported"
)

// Finding is what one part was found to be.
type Finding struct {
	Part   string `json:"part"`
	State  State  `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// Wanting are the findings that somebody must act upon.
func Wanting(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool {
		return f.State != Missing && f.State != Drift
	})
}

// part is one thing that is compared and, if absent, can be created.
type part struct {
	name string
	// read tells what is there, and whether anything is.
	read func(context.Context) (detail string, present bool, err error)
	// create makes it; it is only called when nothing is there.
	create func(context.Context) error
}

// settle compares a part and creates it where that is allowed. An endpoint that
// does not know the operation is a finding and no error.
func (p part) settle(ctx context.Context, create bool) (Finding, error) {
	detail, present, err := p.read(ctx)
	switch {
	case isUnsupported(err):
		return p.unsupported(err), nil
	case err != nil:
		return Finding{}, fmt.Errorf("check %s: %w", p.name, err)
	case present && detail == "":
		return Finding{Part: p.name, State: OK}, nil
	case present:
		return Finding{Part: p.name, State: Drift, Detail: detail}, nil
	case !create:
		return Finding{Part: p.name, State: Missing, Detail: detail}, nil
	}
	if err := p.create(ctx); isUnsupported(err) {
		return p.unsupported(err), nil
	} else if err != nil {
		return Finding{}, fmt.Errorf("create %s: %w", p.name, err)
	}
	return Finding{Part: p.name, State: Created}, nil
}

func (p part) unsupported(err error) Finding {
	return Finding{Part: p.name, State: Unsupported, Detail: codeOf(err)}
}

func settleAll(ctx context.Context, create bool, parts ...part) ([]Finding, error) {
	findings := make([]Finding, 0, len(parts))
	for _, p := range parts {
		finding, err := p.settle(ctx, create)
		if err != nil {
			return findings, err
		}
		findings = append(findings, finding)
	}
	return findings, nil
}

// unsupportedCodes are how endpoints say that they do not know an operation.
var unsupportedCodes = map[string]bool{
	"NotImplemented": true, "UnknownOperationException": true, "UnsupportedOperation": true,
	"InvalidAction": true, "MethodNotAllowed": true,
}

func isUnsupported(err error) bool { return unsupportedCodes[codeOf(err)] }

func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}
