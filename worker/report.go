package main

import (
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/report"
	"millrace/domain/report"
	"millrace/platform/awsconf"
	"millrace/platform/bedrock"
	"millrace/storage/objects"
	storage "millrace/storage/report"
	"millrace/workflows/names"
	workflows "millrace/workflows/report"
)

// registerReport hosts the daily report.
func registerReport(h *host, d dependencies) {
	settings, _ := d.settings.Report.Settings(d.settings.FactoryIDs) // the settings have been checked
	store := storage.Store{Bucket: objects.Bucket{Client: reportS3(d), Name: d.settings.DataBucket}, Prefix: settings.OutputPrefix}
	planner := activities.Planner{Store: store, Settings: settings, Writing: d.settings.Report.WritingLimit, Now: time.Now}
	aggregator := activities.Aggregator{Store: store, Settings: settings, Now: time.Now, Logger: d.logger}
	prices, _ := d.settings.Report.Model.TokenPrices() // so have they
	writer := activities.Writer{
		Store: store, Settings: settings, Model: bedrock.Model{API: bedrock.New(d.clients.config), Timeout: d.settings.Report.Model.Timeout}, Prices: prices, Now: time.Now, Logger: d.logger,
	}
	publisher := activities.Publisher{Store: store, Settings: settings, Logger: d.logger}
	courier := activities.Courier{
		Store: store, Messenger: d.settings.Alerts.sender(d.clients.secrets), Language: report.Language(d.settings.Report.Language),
		PublicURL: d.settings.Report.PublicURL, Now: time.Now, Logger: d.logger,
	}
	awaiter := activities.Awaiter{Runs: d.temporal}
	h.on(names.QueueReports, func(r worker.Registry) {
		for name, run := range map[string]any{
			names.DailyReport: workflows.DailyReport, names.TargetReport: workflows.TargetReport, names.ReportBackfill: workflows.ReportBackfill,
		} {
			r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: name})
		}
		for name, run := range map[string]any{
			workflows.PlanActivity: planner.PlanReport, workflows.SummariseHourActivity: aggregator.SummariseHour,
			workflows.MergeDayActivity: aggregator.MergeDay, workflows.DraftActivity: writer.DraftReport,
			workflows.PublishActivity: activities.Labelled(store, publisher.PublishReport),
			workflows.DeliverActivity: courier.DeliverReports, workflows.AwaitTargetActivity: awaiter.AwaitTarget,
		} {
			r.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name})
		}
	})
}

// reportConnections is how many connections to the bucket stay open: those of six
// hours that read 16 objects each, for four targets.
const reportConnections = 6 * 16 * 4

// reportS3 is a client with connections of its own: a night's reports read
// hundreds of thousands of small objects, and connecting anew costs more than
// reading one.
func reportS3(d dependencies) *s3.Client {
	cfg := d.clients.config.Copy()
	if client, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		cfg.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = reportConnections, reportConnections
		})
	}
	return awsconf.NewS3(cfg)
}
