package main

import (
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	activities "millrace/activities/artifact"
	"millrace/platform/queue"
	"millrace/storage/objects"
	workflows "millrace/workflows/artifact"
	"millrace/workflows/names"
)

// registerArtifactJobs hosts what reaches the devices of factories and hears from
// them.
func registerArtifactJobs(h *host, d dependencies) {
	store := artifactStore(d)
	jobs := activities.Jobs{Store: store, Now: time.Now}
	results := activities.JobResults{
		Queue: queue.Queue{Client: d.clients.sqs, URL: d.settings.JobResultsQueueURL}, Store: store,
		Quarantine: objects.Bucket{Client: d.clients.s3, Name: d.settings.DataBucket},
		Temporal:   d.temporal, Metrics: activities.NewJobMetrics(d.registry), Stretch: workflows.JobResultStretch, Now: time.Now, Logger: d.logger,
	}
	h.on(names.QueueArtifacts, func(r worker.Registry) {
		if publisher, ok := d.settings.IoT.Publisher(); ok {
			jobs.Publisher = publisher
			h.atEnd(publisher.Close)
		}
		r.RegisterActivityWithOptions(jobs.SendJob, activity.RegisterOptions{Name: workflows.SendJobActivity})
		r.RegisterWorkflowWithOptions(workflows.JobResultDrain, workflow.RegisterOptions{Name: names.JobResultDrain})
		r.RegisterActivityWithOptions(results.DrainJobResults, activity.RegisterOptions{Name: workflows.DrainJobResultsActivity})
	})
}
