package table_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"millrace/storage/table"
)

// refusing is a client whose requests all fail; err is nil for a plain failure.
type refusing struct {
	table.API
	errs  []error
	calls *int
}

var errRefused = errors.New("refused")

func (refusing) Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return nil, errRefused
}

func (r refusing) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	*r.calls++
	if *r.calls > len(r.errs) {
		return &dynamodb.TransactWriteItemsOutput{}, nil
	}
	return nil, r.errs[*r.calls-1]
}

func cancelled(codes ...string) error {
	reasons := make([]types.CancellationReason, len(codes))
	for i, code := range codes {
		reasons[i].Code = aws.String(code)
	}
	return &types.TransactionCanceledException{CancellationReasons: reasons}
}

func TestCollisionsAreTriedAgainAndNothingElse(t *testing.T) {
	collision := cancelled("None", "TransactionConflict")
	var many []error
	for range 100 {
		many = append(many, collision)
	}
	for name, c := range map[string]struct {
		errs    []error
		calls   int
		wantErr bool
	}{
		"no trouble":        {nil, 1, false},
		"three collisions":  {[]error{collision, &types.TransactionConflictException{}, collision}, 4, false},
		"collisions always": {many, 10, true},
		"refused condition": {[]error{cancelled("ConditionalCheckFailed", "None")}, 1, true},
		"other failure":     {[]error{errRefused}, 1, true},
		"both reasons":      {[]error{cancelled("ConditionalCheckFailed", "TransactionConflict")}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := table.Table{Client: refusing{errs: c.errs, calls: &calls}}.TransactRetrying(t.Context())
			require.Equal(t, c.wantErr, err != nil)
			require.Equal(t, c.calls, calls)
		})
	}
}

func TestWaitingOutACollisionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	err := table.Table{Client: refusing{errs: []error{cancelled("TransactionConflict"), cancelled("TransactionConflict")}, calls: &calls}}.TransactRetrying(ctx)
	require.Error(t, err)
}
