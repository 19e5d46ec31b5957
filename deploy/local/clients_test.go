package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"millrace/deploy/local/pki"
)

func (e environment) credentials() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(e["AWS_ACCESS_KEY_ID"], e["AWS_SECRET_ACCESS_KEY"], "")
}

func (e environment) dynamodb() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{BaseEndpoint: aws.String(e["AWS_ENDPOINT_URL_DYNAMODB"]), Region: e["AWS_REGION"], Credentials: e.credentials()})
}

func (e environment) s3() *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String(e["AWS_ENDPOINT_URL_S3"]), Region: e["AWS_REGION"], Credentials: e.credentials()})
}

func (e environment) sqs() *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(e["AWS_ENDPOINT_URL_SQS"]), Region: e["AWS_REGION"], Credentials: e.credentials(),
		HTTPClient: &http.Client{Transport: bufferedRequests{}},
	})
}

// bufferedRequests keeps a request's body until it is written. The SDK closes it as soon as the answer
// begins; the transport may still be looking for its end then, and breaks off the answer. The SDK
// asks again, and the messages of the first answer would be missing for as long as they are hidden.
type bufferedRequests struct{}

// RoundTrip sends a copy of r.
func (bufferedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

func (e environment) makeBucket(t testing.TB, name string) {
	t.Helper()
	_, err := e.s3().CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: &name, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(e["AWS_REGION"])},
	})
	require.NoError(t, err)
}

func (e environment) makeQueue(t testing.TB, name string) string {
	t.Helper()
	out, err := e.sqs().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	require.NoError(t, err)
	return aws.ToString(out.QueueUrl)
}

func (e environment) makeTable(t testing.TB, name string) {
	t.Helper()
	_, err := e.dynamodb().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest,
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
	})
	require.NoError(t, err)
}

func (e environment) objects(t testing.TB, bucket string) map[string]string {
	t.Helper()
	listed, err := e.s3().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	require.NoError(t, err)
	objects := make(map[string]string)
	for _, object := range listed.Contents {
		out, err := e.s3().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: object.Key})
		require.NoError(t, err)
		body, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		require.NoError(t, out.Body.Close())
		objects[aws.ToString(object.Key)] = string(body)
	}
	return objects
}

// receive takes one message off a queue.
func (e environment) receive(t testing.TB, url string) string {
	t.Helper()
	out, err := e.sqs().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5, MaxNumberOfMessages: 1})
	require.NoError(t, err)
	require.Len(t, out.Messages, 1)
	_, err = e.sqs().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle})
	require.NoError(t, err)
	return aws.ToString(out.Messages[0].Body)
}

// control asks the control interface and returns its answer.
func (e environment) control(t testing.TB, path, body string) (int, map[string]string) {
	t.Helper()
	response, err := http.Post(e["MILLRACE_LOCAL_CONTROL"]+path, "application/json", bytes.NewBufferString(body))
	require.NoError(t, err)
	defer response.Body.Close()
	var answer map[string]string
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return response.StatusCode, answer
}

func (e environment) mustControl(t testing.TB, path, body string) map[string]string {
	t.Helper()
	status, answer := e.control(t, path, body)
	require.Equal(t, http.StatusOK, status, answer)
	return answer
}

func (e environment) certificates(id string) pki.Files {
	dir := filepath.Join(e["MILLRACE_LOCAL_DIR"], "certs")
	return pki.Files{Cert: filepath.Join(dir, id+".crt"), Key: filepath.Join(dir, id+".key"), CA: filepath.Join(dir, "ca.crt")}
}

func (e environment) connect(t testing.TB, files pki.Files, clientID string) paho.Client {
	t.Helper()
	tls, err := pki.ClientTLS(files)
	require.NoError(t, err)
	client := paho.NewClient(paho.NewClientOptions().AddBroker("ssl://" + e["MILLRACE_IOT_ENDPOINT"]).
		SetTLSConfig(tls).SetClientID(clientID).SetAutoReconnect(false))
	token := client.Connect()
	require.True(t, token.WaitTimeout(patience))
	require.NoError(t, token.Error())
	t.Cleanup(func() { client.Disconnect(0) })
	return client
}

// publish sends one message on a new connection and reports whether it was acknowledged.
func (e environment) publish(t testing.TB, factory string, files pki.Files, body string) error {
	t.Helper()
	client := e.connect(t, files, "edge-"+factory)
	defer client.Disconnect(0)
	token := client.Publish("aegis/"+factory+"/factory_state", 1, false, body)
	require.True(t, token.WaitTimeout(15*time.Second), "neither PUBACK nor lost connection")
	return token.Error()
}
