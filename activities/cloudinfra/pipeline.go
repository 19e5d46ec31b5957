package cloudinfra

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
	workflows "millrace/workflows/cloudinfra"
)

func (c Collector) measurePipeline(ctx context.Context, req workflows.ProbeRequest) (workflows.Found[workflows.PipelineMetrics], error) {
	m := &metrics{}
	functions, table, letters := lambdaMetrics(m, c.Settings.PipelineLambdaNames), tableMetrics(m, c.Settings.MonitoredTableName), dlqMetrics(m, c.Settings.DLQQueueName)
	if err := m.read(ctx, c.CloudWatch, req.AsOf, c.Settings.MetricWindow); err != nil {
		return workflows.Found[workflows.PipelineMetrics]{}, c.fail(getMetricData, err)
	}
	return found(workflows.PipelineMetrics{Lambdas: functions(), DynamoDB: table(), DLQOldestAge: letters()}, c.metricErrors(m)...), nil
}

func lambdaMetrics(m *metrics, names []string) func() []cloudinfra.Lambda {
	ids := make([][4]string, len(names))
	for i, name := range names {
		add := func(metricName, stat string) string {
			return m.add(metric{"AWS/Lambda", metricName, stat, []string{"FunctionName", name}})
		}
		ids[i] = [4]string{add("Invocations", "Sum"), add("Errors", "Sum"), add("Throttles", "Sum"), add("Duration", "p95")}
	}
	return func() []cloudinfra.Lambda {
		functions := make([]cloudinfra.Lambda, len(names))
		for i, name := range names {
			functions[i] = cloudinfra.Lambda{
				Name: name, Invocations: m.sum(ids[i][0]), Errors: m.sum(ids[i][1]), Throttles: m.sum(ids[i][2]), DurationP95: m.newest(ids[i][3]),
			}
		}
		return functions
	}
}

// tableOperations are the operations that this product calls: CloudWatch counts
// a table's system errors by operation.
var tableOperations = []string{"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}

func tableMetrics(m *metrics, table string) func() *cloudinfra.DynamoDB {
	if table == "" {
		return func() *cloudinfra.DynamoDB { return nil }
	}
	const namespace = "AWS/DynamoDB"
	reads := m.add(metric{namespace, "ReadThrottleEvents", "Sum", []string{"TableName", table}})
	writes := m.add(metric{namespace, "WriteThrottleEvents", "Sum", []string{"TableName", table}})
	var systemErrors []string
	for _, operation := range tableOperations {
		systemErrors = append(systemErrors, m.add(metric{namespace, "SystemErrors", "Sum", []string{"TableName", table, "Operation", operation}}))
	}
	return func() *cloudinfra.DynamoDB {
		return &cloudinfra.DynamoDB{TableName: table, ReadThrottles: m.sum(reads), WriteThrottles: m.sum(writes), SystemErrors: m.sum(systemErrors...)}
	}
}

func dlqMetrics(m *metrics, queue string) func() *exact.Decimal {
	if queue == "" {
		return func() *exact.Decimal { return nil }
	}
	age := m.add(metric{"AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", []string{"QueueName", queue}})
	return func() *exact.Decimal { return m.newest(age) }
}

func (c Collector) probeDLQ(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[cloudinfra.DLQ], error) {
	name := c.Settings.DLQQueueName
	out, err := c.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return workflows.Found[cloudinfra.DLQ]{}, c.fail("sqs:GetQueueUrl", err)
	}
	visible, _, err := c.depth(ctx, aws.ToString(out.QueueUrl))
	if err != nil {
		return workflows.Found[cloudinfra.DLQ]{}, c.fail(workflows.SourceOf(cloudinfra.ProbeDLQ), err)
	}
	return found(cloudinfra.DLQ{QueueName: name, MessagesVisible: &visible}), nil
}

// depth is how many messages of a queue wait and how many are in flight; both are
// SQS's approximations.
func (c Collector) depth(ctx context.Context, url string) (visible, inFlight int64, err error) {
	out, err := c.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}})
	if err != nil {
		return 0, 0, err
	}
	numbers := [2]int64{}
	for i, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	} {
		n, err := strconv.ParseInt(out.Attributes[string(name)], 10, 64)
		if err != nil {
			return 0, 0, &unreadableError{what: string(name) + " is no whole number"}
		}
		numbers[i] = n
	}
	return numbers[0], numbers[1], nil
}

func (c Collector) probeQueues(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[[]cloudinfra.Queue], error) {
	return gather(c.watchedQueues(), workflows.SourceOf(cloudinfra.ProbeQueues), c, func(q WatchedQueue) (cloudinfra.Queue, error) {
		visible, inFlight, err := c.depth(ctx, q.URL)
		return cloudinfra.Queue{Name: q.Name, MessagesVisible: visible, MessagesInFlight: inFlight, IsDLQ: q.IsDLQ}, err
	})
}

func (c Collector) probeSchedulers(ctx context.Context, _ workflows.ProbeRequest) (workflows.Found[[]cloudinfra.Scheduler], error) {
	return gather(c.Settings.SchedulerNames, workflows.SourceOf(cloudinfra.ProbeSchedulers), c, func(name string) (cloudinfra.Scheduler, error) {
		in := &scheduler.GetScheduleInput{Name: &name}
		if group, own, ok := strings.Cut(name, "/"); ok {
			in.GroupName, in.Name = &group, &own
		}
		out, err := c.Scheduler.GetSchedule(ctx, in)
		if err != nil {
			return cloudinfra.Scheduler{}, err
		}
		return cloudinfra.Scheduler{Name: name, State: string(out.State)}, nil
	})
}
