package queueage

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/stretchr/testify/require"
)

type fake struct {
	in     *cloudwatch.GetMetricStatisticsInput
	points []types.Datapoint
	err    error
}

func (f *fake) GetMetricStatistics(_ context.Context, in *cloudwatch.GetMetricStatisticsInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricStatisticsOutput, error) {
	f.in = in
	return &cloudwatch.GetMetricStatisticsOutput{Datapoints: f.points}, f.err
}

var now = time.Date(2026, 5, 20, 8, 28, 0, 0, time.UTC)

func source(client *fake) Source {
	return Source{Client: client, QueueURL: "https://sqs.ap-northeast-2.amazonaws.com/123456789012/millrace-telemetry", Now: func() time.Time { return now }}
}

func TestTheAgeIsTheGreatestThatCanBe(t *testing.T) {
	client := &fake{points: []types.Datapoint{
		{Timestamp: aws.Time(now.Add(-2 * time.Minute)), Maximum: aws.Float64(30)},
		{Timestamp: aws.Time(now.Add(-5 * time.Minute)), Maximum: aws.Float64(600)},
		{Timestamp: aws.Time(now.Add(time.Second)), Maximum: aws.Float64(1)},
	}}
	age, known, err := source(client).Age(t.Context())
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, 15*time.Minute, age)
	require.Equal(t, "AWS/SQS", *client.in.Namespace)
	require.Equal(t, "ApproximateAgeOfOldestMessage", *client.in.MetricName)
	require.Equal(t, []types.Dimension{{Name: aws.String("QueueName"), Value: aws.String("millrace-telemetry")}}, client.in.Dimensions)
	require.Equal(t, []types.Statistic{types.StatisticMaximum}, client.in.Statistics)
	require.Equal(t, 10*time.Minute, client.in.EndTime.Sub(*client.in.StartTime))
}

func TestAQueueWithoutFiguresHasNoKnownAge(t *testing.T) {
	_, known, err := source(&fake{}).Age(t.Context())
	require.NoError(t, err)
	require.False(t, known)
}

func TestAFailureIsNoAge(t *testing.T) {
	out := errors.New("out")
	_, _, err := source(&fake{err: out}).Age(t.Context())
	require.ErrorIs(t, err, out)
}
