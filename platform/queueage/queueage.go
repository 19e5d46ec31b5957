// Package queueage tells how old the oldest message of an SQS queue is, as
// CloudWatch saw it. SQS itself does not say.
package queueage

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// API is the part of the CloudWatch client that is needed.
type API interface {
	GetMetricStatistics(context.Context, *cloudwatch.GetMetricStatisticsInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricStatisticsOutput, error)
}

// Source reads the age of one queue's messages.
type Source struct {
	Client   API
	QueueURL string
	Now      func() time.Time
}

const (
	// span is how far back figures count: they come each minute and some minutes
	// late.
	span   = 10 * time.Minute
	period = time.Minute
)

// Age is the greatest age that the oldest message can have now (metric
// ApproximateAgeOfOldestMessage of AWS/SQS, in seconds). It is not known for a
// queue that was idle for hours: CloudWatch has no figures of those.
func (s Source) Age(ctx context.Context) (age time.Duration, known bool, err error) {
	now := s.Now()
	out, err := s.Client.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
		Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: aws.String(path.Base(s.QueueURL))}},
		StartTime:  aws.Time(now.Add(-span)), EndTime: aws.Time(now), Period: aws.Int32(int32(period / time.Second)),
		Statistics: []types.Statistic{types.StatisticMaximum},
	})
	if err != nil {
		return 0, false, fmt.Errorf("read the age of the oldest message: %w", err)
	}
	for _, point := range out.Datapoints {
		// The message may have stayed since the figure was taken.
		since := max(now.Sub(aws.ToTime(point.Timestamp)), 0)
		age = max(age, time.Duration(aws.ToFloat64(point.Maximum))*time.Second+since)
	}
	return age, len(out.Datapoints) > 0, nil
}
