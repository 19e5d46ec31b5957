package cloudinfra

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"millrace/domain/cloudinfra"
	"millrace/domain/exact"
)

const getMetricData = "cloudwatch:GetMetricData"

// metricPeriod is the resolution that is asked for.
const metricPeriod = 60

// metrics are all metrics of a section, read by one request.
type metrics struct {
	queries []types.MetricDataQuery
	series  map[string][]exact.Decimal
	errors  []string
}

// metric names a series of CloudWatch; dimensions are name, value, name, value.
type metric struct {
	namespace, name, stat string
	dimensions            []string
}

// add asks for a metric and returns the id to read it by.
func (m *metrics) add(want metric) string {
	id := "m" + strconv.Itoa(len(m.queries))
	var dimensions []types.Dimension
	for pair := range slices.Chunk(want.dimensions, 2) {
		dimensions = append(dimensions, types.Dimension{Name: aws.String(pair[0]), Value: aws.String(pair[1])})
	}
	m.queries = append(m.queries, types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String(want.namespace), MetricName: aws.String(want.name), Dimensions: dimensions},
		Period: aws.Int32(metricPeriod), Stat: aws.String(want.stat),
	}})
	return id
}

// read fetches all series of whole minutes in the window before asOf.
func (m *metrics) read(ctx context.Context, client CloudWatch, asOf time.Time, window time.Duration) error {
	m.series = map[string][]exact.Decimal{}
	if len(m.queries) == 0 {
		return nil
	}
	end := asOf.UTC().Truncate(time.Minute)
	pages := cloudwatch.NewGetMetricDataPaginator(client, &cloudwatch.GetMetricDataInput{
		MetricDataQueries: m.queries, StartTime: aws.Time(end.Add(-window)), EndTime: &end, ScanBy: types.ScanByTimestampDescending,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, result := range page.MetricDataResults {
			if err := m.accept(result); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *metrics) accept(result types.MetricDataResult) error {
	id := aws.ToString(result.Id)
	for _, value := range result.Values {
		d, err := decimalOf(value)
		if err != nil {
			return err
		}
		m.series[id] = append(m.series[id], d)
	}
	if result.StatusCode == types.StatusCodeForbidden || result.StatusCode == types.StatusCodeInternalError {
		m.errors = append(m.errors, fmt.Sprintf("%s: %s", aws.ToString(result.Label), result.StatusCode))
	}
	return nil
}

// decimalOf is a value that the SDK hands over as a float: its shortest decimal
// is the number that CloudWatch sent.
func decimalOf(value float64) (exact.Decimal, error) {
	d, err := exact.Parse(strconv.FormatFloat(value, 'f', -1, 64))
	if err != nil {
		return exact.Decimal{}, &unreadableError{what: "a metric has a value that is no number"}
	}
	return d, nil
}

// newest is the newest value of a series, nil without any.
func (m *metrics) newest(id string) *exact.Decimal {
	if len(m.series[id]) == 0 {
		return nil
	}
	return &m.series[id][0]
}

// sum adds up all values of the given series, nil without any: what was not
// measured is not zero.
func (m *metrics) sum(ids ...string) *exact.Decimal {
	var total exact.Decimal
	measured := false
	for _, id := range ids {
		for _, value := range m.series[id] {
			total, measured = total.Add(value), true
		}
	}
	if !measured {
		return nil
	}
	return &total
}

// mean is the mean of a series, nil without any.
func (m *metrics) mean(id string) *exact.Decimal {
	total := m.sum(id)
	if total == nil {
		return nil
	}
	mean := total.Quo(exact.FromInt(int64(len(m.series[id]))), 4)
	return &mean
}

// of folds the newest values of several series; nil where none has any.
func (m *metrics) of(ids []string, fold func(a, b exact.Decimal) exact.Decimal) *exact.Decimal {
	var folded *exact.Decimal
	for _, id := range ids {
		value := m.newest(id)
		switch {
		case value == nil:
		case folded == nil:
			folded = value
		default:
			next := fold(*folded, *value)
			folded = &next
		}
	}
	return folded
}

func mebibytes(bytes *exact.Decimal) *exact.Decimal {
	if bytes == nil {
		return nil
	}
	mib := cloudinfra.Mebibytes(*bytes)
	return &mib
}

// metricErrors are the series that CloudWatch would not hand over.
func (c Collector) metricErrors(m *metrics) []cloudinfra.Error {
	var errors []cloudinfra.Error
	for _, text := range m.errors {
		errors = append(errors, c.errorOf(getMetricData, &unreadableError{what: text}))
	}
	return errors
}
