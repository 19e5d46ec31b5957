package awsconf

import (
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Limits of the connections to AWS. The SDK keeps only 10 idle connections per
// host, fewer than the messages a consumer has in flight.
const (
	connectTimeout  = 2 * time.Second
	responseTimeout = 25 * time.Second // above SQS's long poll of 20 s
	idlePerHost     = 128
)

func newHTTPClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = idlePerHost
			t.ResponseHeaderTimeout = responseTimeout
		})
}
