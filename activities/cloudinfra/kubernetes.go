package cloudinfra

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// kubernetesTimeout bounds one request to the cluster.
	kubernetesTimeout = 10 * time.Second
	// clusterAge is how long the cluster's address is remembered.
	clusterAge = 10 * time.Minute
	// tokenPrefix and tokenExpiry are what the cluster's authenticator wants: a
	// signed request to STS that names the cluster in a header.
	tokenPrefix   = "k8s-aws-v1."
	clusterHeader = "x-k8s-aws-id"
	tokenExpiry   = "60"
)

// CallerIdentity signs requests that tell who the caller is.
type CallerIdentity interface {
	PresignGetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.PresignOptions)) (*v4.PresignedHTTPRequest, error)
}

// Cluster connects to the Kubernetes API of an EKS cluster. It remembers the
// cluster's address for some minutes; the token is made anew each time.
type Cluster struct {
	EKS  EKS
	STS  CallerIdentity
	Name string
	Now  func() time.Time

	mu      sync.Mutex
	address *clusterAddress
}

type clusterAddress struct {
	endpoint  string
	authority []byte
	readAt    time.Time
}

// Connect is a client with a fresh token.
func (c *Cluster) Connect(ctx context.Context) (dynamic.Interface, error) {
	address, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(&rest.Config{
		Host: address.endpoint, BearerToken: token, Timeout: kubernetesTimeout, UserAgent: "millrace",
		TLSClientConfig: rest.TLSClientConfig{CAData: address.authority},
		QPS:             -1, // the probes page one request after the other
	})
}

// Forget drops the remembered address: a cluster that was made again has another.
func (c *Cluster) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address = nil
}

func (c *Cluster) locate(ctx context.Context) (*clusterAddress, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.address != nil && c.Now().Sub(c.address.readAt) < clusterAge {
		return c.address, nil
	}
	out, err := c.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.Name})
	if err != nil {
		return nil, fmt.Errorf("locate cluster: %w", err)
	}
	if out.Cluster == nil || aws.ToString(out.Cluster.Endpoint) == "" || out.Cluster.CertificateAuthority == nil {
		return nil, &unreadableError{what: "the cluster has no endpoint yet"}
	}
	authority, err := base64.StdEncoding.DecodeString(aws.ToString(out.Cluster.CertificateAuthority.Data))
	if err != nil {
		return nil, &unreadableError{what: "the cluster's certificate authority is no base64"}
	}
	c.address = &clusterAddress{endpoint: aws.ToString(out.Cluster.Endpoint), authority: authority, readAt: c.Now()}
	return c.address, nil
}

// token is a signed GetCallerIdentity request in the form that EKS takes as a
// bearer token. Nothing is sent for it.
func (c *Cluster) token(ctx context.Context) (string, error) {
	signed, err := c.STS.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions,
				smithyhttp.SetHeaderValue(clusterHeader, c.Name), smithyhttp.SetHeaderValue("X-Amz-Expires", tokenExpiry))
		})
	})
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(signed.URL)), nil
}
