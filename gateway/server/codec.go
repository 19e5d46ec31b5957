package server

import (
	"context"
	"net/http"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"millrace/domain/monitoring"
)

const maxCodecBody = 8 << 20

// Payload is a payload of Temporal in its JSON form.
type Payload struct {
	_        struct{}          `additionalProperties:"true"`
	Metadata map[string][]byte `json:"metadata,omitempty" doc:"Values in base64."`
	Data     []byte            `json:"data,omitempty" doc:"In base64."`
}

// Payloads is what the Temporal UI and CLI send to a codec server and get back.
type Payloads struct {
	_        struct{}  `additionalProperties:"true"`
	Payloads []Payload `json:"payloads,omitempty" nullable:"false" doc:"Absent where there is none, as for a query without arguments."`
}

type codecBody struct {
	Body Payloads
}

// Codec adds the codec server of workflow payloads, which the Temporal UI and CLI
// ask to show and to send what is encrypted. Whoever may call it may read every
// payload. See https://docs.temporal.io/remote-data-encoding.
func Codec(codec converter.PayloadCodec) Routes {
	type conversion func([]*commonpb.Payload) ([]*commonpb.Payload, error)
	return func(r *Router) {
		for name, convert := range map[string]conversion{"decode": codec.Decode, "encode": codec.Encode} {
			Handle(r, Operation{
				ID: name + "-payloads", Method: http.MethodPost, Path: "/v1/codec/" + name, Tag: "operations", Scope: monitoring.ScopeAdmin,
				Budget: monitoring.BudgetRead, MaxBody: maxCodecBody,
				Summary:     "Ask the codec server to " + name + " workflow payloads",
				Description: "As the Temporal UI and CLI do, given .../v1/codec as the codec endpoint.",
			}, func(_ context.Context, in *codecBody) (*codecBody, error) { return in.converted(convert) })
		}
	}
}

func (b codecBody) converted(convert func([]*commonpb.Payload) ([]*commonpb.Payload, error)) (*codecBody, error) {
	payloads := make([]*commonpb.Payload, len(b.Body.Payloads))
	for i, p := range b.Body.Payloads {
		payloads[i] = &commonpb.Payload{Metadata: p.Metadata, Data: p.Data}
	}
	payloads, err := convert(payloads)
	if err != nil {
		return nil, invalidInput("body.payloads", "must open under the key ring: "+err.Error())
	}
	answer := &codecBody{Body: Payloads{Payloads: make([]Payload, len(payloads))}}
	for i, p := range payloads {
		answer.Body.Payloads[i] = Payload{Metadata: p.GetMetadata(), Data: p.GetData()}
	}
	return answer, nil
}
