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
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
)

const (
	// initTimeout bounds what a function does before its first invocation:
	// Lambda ends an initialization after 10 s.
	initTimeout = 9 * time.Second
	// responseTimeout bounds how long a request of the SDK waits for its
	// response, which usually takes milliseconds: one that hangs must leave time
	// for a retry. No function polls a queue for long.
	responseTimeout = 5 * time.Second
)

// Start runs a function in Lambda. It reads the table first, so that the first
// request finds an open connection.
func Start[H any](newHandler NewHandler[H]) { run(newHandler, connect) }

// StartWithoutTable runs a function that uses neither the table nor anything
// else of AWS.
func StartWithoutTable[H any](newHandler NewHandler[H]) {
	run(newHandler, func(_ context.Context, cfg Config, logger *slog.Logger) (*Dependencies, error) {
		return &Dependencies{Config: cfg, Logger: logger, Clock: clock, Metrics: newRecorder(cfg)}, nil
	})
}

// connector makes what a function depends on.
type connector = func(context.Context, Config, *slog.Logger) (*Dependencies, error)

func run[H any](newHandler NewHandler[H], connect connector) {
	logger := lambdacontext.NewLogger()
	// net/http logs whatever receivers send unasked, at any length.
	log.SetOutput(io.Discard)
	// Views may take half of the memory, so the collector must not wait until
	// the heap has doubled.
	if memory := int64(lambdacontext.MemoryLimitInMB) << 20; memory > 0 {
		debug.SetMemoryLimit(memory / 10 * 9)
	}
	ctx, cancel := context.WithTimeout(context.Background(), initTimeout)
	defer cancel()
	handler, err := start(ctx, newHandler, connect, logger)
	if err != nil {
		logger.Error("cannot start", "error", err)
		os.Exit(1) //nolint:gocritic // the deferred cancel frees nothing that outlives the process
	}
	lambda.Start(handler)
}

func start[H any](ctx context.Context, newHandler NewHandler[H], connect connector, logger *slog.Logger) (handler H, err error) {
	cfg, err := ConfigFrom(os.Getenv)
	if err != nil {
		return handler, err
	}
	deps, err := connect(ctx, cfg, logger)
	if err != nil {
		return handler, err
	}
	return newHandler(ctx, deps)
}

// connect makes the clients and opens a connection to the table.
func connect(ctx context.Context, cfg Config, logger *slog.Logger) (*Dependencies, error) {
	aws, err := awsConfigFrom(os.Getenv)
	if err != nil {
		return nil, err
	}
	aws.HTTPClient = sdkhttp.New(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = responseTimeout
	}).GetTransport())
	deps := NewDependencies(cfg, aws, logger)
	deps.Metrics = newRecorder(cfg)
	if err := deps.Table.Ping(ctx); err != nil {
		return nil, fmt.Errorf("reach the table: %w", err)
	}
	return deps, nil
}
