package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fakes are what the test binary does under the names of the product's programs, so that the
// order and the environment in which these are started can be seen.
var fakes = map[string]func() error{
	"worker":  func() error { return fakeServer("MILLRACE_METRICS_ADDRESS") },
	"gateway": func() error { return fakeServer("MILLRACE_GATEWAY_ADDRESS") },
	"starter": fakeStarter,
	"edge":    fakeEdge,
}

// traceFile, beside the fakes, gets a line for each start.
const traceFile = "trace"

// failFile, beside the fakes, names the starter command that fails.
const failFile = "fail"

func note() error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(os.Args[0]), traceFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	line := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	_, err = fmt.Fprintf(f, "%s cert=%s\n", line, filepath.Base(os.Getenv("MILLRACE_IOT_CERT_FILE")))
	return errors.Join(err, f.Close())
}

func untilStopped() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

func fakeServer(addrEnv string) error {
	if err := note(); err != nil {
		return err
	}
	server := &http.Server{Addr: os.Getenv(addrEnv), ReadHeaderTimeout: time.Second}
	go func() {
		<-untilStopped().Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fakeStarter() error {
	if err := note(); err != nil {
		return err
	}
	fail, err := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), failFile))
	if err == nil && strings.TrimSpace(string(fail)) == os.Args[1] {
		return errors.New("the bucket belongs to somebody else")
	}
	if os.Args[1] == "token" && os.Args[2] == "create" {
		fmt.Println("a-ready-token")
	}
	if os.Args[1] != "provision" {
		return nil
	}
	db, err := tablesFromEnv()
	if err != nil {
		return err
	}
	_, err = db.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: aws.String("millrace-factory-status"), BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
	})
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	return err
}

// fakeEdge writes its factory's state itself, as worker and rules do in the end.
func fakeEdge() error {
	if err := note(); err != nil {
		return err
	}
	id := ""
	for i, arg := range os.Args[:len(os.Args)-1] {
		if arg == "--factory" {
			id = os.Args[i+1]
		}
	}
	db, err := tablesFromEnv()
	if err != nil {
		return err
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	_, err = db.PutItem(context.Background(), &dynamodb.PutItemInput{
		TableName: aws.String("millrace-factory-status"),
		Item: map[string]types.AttributeValue{
			"pk": text("FACTORY#" + id), "sk": text("LATEST"), "factory_id": text(id),
			"last_factory_state_at": text(time.Now().UTC().Format(time.RFC3339)),
		},
	})
	if err != nil {
		return err
	}
	<-untilStopped().Done()
	return nil
}

func tablesFromEnv() (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg), nil
}
