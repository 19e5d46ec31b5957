package report

import (
	"context"

	"millrace/domain/report"
	storage "millrace/storage/report"
	workflows "millrace/workflows/report"
)

// Publish writes a report.
type Publish func(ctx context.Context, req workflows.PublishRequest) (workflows.PublishResult, error)

// Labelled publishes and labels what was published, so that lists can tell who
// worded a report and its verdict without reading it.
func Labelled(store storage.Store, publish Publish) Publish {
	return func(ctx context.Context, req workflows.PublishRequest) (workflows.PublishResult, error) {
		defer beating(ctx)()
		result, err := publish(ctx, req)
		if err != nil {
			return result, err
		}
		return result, failure(store.Label(ctx, req.Date, req.Target, result.Generator, report.Verdict(result.Verdict)))
	}
}
