package stack

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func TestStreamOfAnOlderVersionIsSwitchedOffOnce(t *testing.T) {
	s, client := states(t)
	var said []string
	s.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	table := aws.String(defaultStatusTable)
	_, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName:           table,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	require.NoError(t, err)
	putState(t, client, "factory-a", "")

	require.NoError(t, s.stopStreams(t.Context(), client))
	require.Len(t, said, 1)
	require.Contains(t, said[0], defaultStatusTable)
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: table})
	require.NoError(t, err)
	stream := described.Table.StreamSpecification
	require.True(t, stream == nil || !aws.ToBool(stream.StreamEnabled))
	putState(t, client, "factory-b", "")

	require.NoError(t, s.stopStreams(t.Context(), client))
	require.Len(t, said, 1, "it is off already")
}

func TestTablesWithoutAStreamAreLeftAlone(t *testing.T) {
	s, client := states(t)
	s.Say = func(format string, args ...any) { t.Errorf(format, args...) }
	require.NoError(t, s.stopStreams(t.Context(), client))
}
