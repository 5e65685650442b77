package app

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/sdkhttp"
	"github.com/commerce-integration/service/pkg/sqsqueue"
)

// Base is what every function is made from.
type Dependencies struct {
	Config Config
	AWS    aws.Config
	Table  *dynamo.Table
	Logger *slog.Logger
	Clock  func() time.Time

	endpoints Endpoints
}

// Maker makes a function's handler, of any form that Lambda takes. It fails
// when the configuration does, so that a fault shows at the start.
type NewHandler func(ctx context.Context, base *Dependencies) (handler any, err error)

// Endpoints are those of other servers than AWS's; "" is AWS's, or what the
// environment says.
type Endpoints struct{ DynamoDB, SQS string }

// NewBase makes the clients that every function needs.
func NewDependencies(cfg Config, aws aws.Config, logger *slog.Logger, endpoints Endpoints) *Dependencies {
	client := dynamodb.NewFromConfig(aws, func(o *dynamodb.Options) {
		if endpoints.DynamoDB != "" {
			o.BaseEndpoint = &endpoints.DynamoDB
		}
	})
	return &Dependencies{
		Config: cfg, AWS: aws, Table: dynamo.New(client, cfg.TableName, time.Now),
		Logger: logger, Clock: time.Now, endpoints: endpoints,
	}
}

// initLimit bounds what a function does before its first invocation: Lambda
// ends an initialization after 10 s.
const initLimit = 9 * time.Second

// Start runs a function in Lambda. It makes one real read first, so that the
// first request finds an open connection.
func Start(maker NewHandler) {
	logger := lambdacontext.NewLogger()
	// net/http prints what receivers send unasked, as much of it as they like.
	log.SetOutput(io.Discard)
	// Views may take half of the memory; the collector must not wait until the
	// heap is twice as large as what lives.
	if memory := int64(lambdacontext.MemoryLimitInMB) << 20; memory > 0 {
		debug.SetMemoryLimit(memory / 10 * 9)
	}
	ctx, cancel := context.WithTimeout(context.Background(), initLimit)
	defer cancel()
	handler, err := start(ctx, maker, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		os.Exit(1) //nolint:gocritic // the deferred cancel frees nothing that outlives the process
	}
	lambda.Start(handler)
}

func start(ctx context.Context, maker NewHandler, logger *slog.Logger) (any, error) {
	cfg, err := ConfigFrom(os.Getenv)
	if err != nil {
		return nil, err
	}
	aws, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client()))
	if err != nil {
		return nil, fmt.Errorf("load the AWS configuration: %w", err)
	}
	aws.HTTPClient = sdkhttp.New(aws.HTTPClient)
	base := NewDependencies(cfg, aws, logger, Endpoints{})
	if err := base.Table.Ping(ctx); err != nil {
		return nil, fmt.Errorf("reach the table: %w", err)
	}
	return maker(ctx, base)
}

// answerLimit bounds how long a request of the SDK waits for an answer to
// begin, which takes milliseconds when all is well: one that hangs must leave
// time for another try. No function polls a queue for long.
const answerLimit = 5 * time.Second

func client() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerLimit
	})
}

// queue returns the queue at the URL.
func (b *Dependencies) queue(url string) *sqsqueue.Queue {
	client := sqs.NewFromConfig(b.AWS, func(o *sqs.Options) {
		if b.endpoints.SQS != "" {
			o.BaseEndpoint = &b.endpoints.SQS
		}
	})
	return sqsqueue.New(client, url)
}

// viewBytes is what views may take of the function's memory: half, which
// leaves room for filling one beside them.
func (b *Dependencies) viewBytes() int64 {
	if memory := int64(lambdacontext.MemoryLimitInMB); memory > 0 {
		return memory << 20 / 2
	}
	return 1 << 30
}
