package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/gateway/server"
	"millrace/platform/awsconf"
	"millrace/storage/objects"
	reportstore "millrace/storage/report"
)

// reportConcurrency is how many requests to the bucket the reports' routes make
// at once; more wait, within the timeout of their request.
const reportConcurrency = 32

// reports are the daily reports in the bucket.
func reports(cfg settings, aws aws.Config) reportstore.Store {
	client := s3.New(awsconf.NewS3(aws).Options(), func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, server.Bound(reportConcurrency))
	})
	return reportstore.Store{Bucket: objects.Bucket{Client: client, Name: cfg.DataBucket}, Prefix: cfg.OutputPrefix}
}
