package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
)

// Service is a running service with clients of its servers. The clients go past
// the faults and the meter that the service's own have.
type Service struct {
	Info   *runner.Info
	Table  *dynamodb.Client
	Queues *sqs.Client
	issuer *issuer.Issuer
}

func connect(dir string) (*Service, error) {
	info, err := runner.ReadInfo(dir)
	if err != nil {
		return nil, err
	}
	tokens, err := runner.OpenIssuer(dir)
	if err != nil {
		return nil, fmt.Errorf("sign tokens for the service: %w", err)
	}
	cfg := runner.AWSConfig()
	return &Service{
		Info: info, issuer: tokens,
		Table:  dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &info.DynamoDBEndpoint }),
		Queues: sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &info.SQSEndpoint }),
	}, nil
}

// Embedded is the whole service within this process, whose clients can be
// metered and whose functions profiled.
type Embedded struct {
	*Service
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended is closed
}

// Embed runs the service with its data in a folder until Close. adapt may change
// what it is configured with, such as its AWS clients.
func Embed(ctx context.Context, template, binDir, dir string, log io.Writer, adapt func(*runner.Config)) (*Embedded, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &Embedded{stop: stop, ended: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(e.ended)
		cfg := runner.Config{
			Addr: "127.0.0.1:0", DataDir: dir, BinDir: binDir, Template: template, NoDemo: true, PrivateTargets: true,
			Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Ready:  func(*runner.Info) { close(ready) },
		}
		adapt(&cfg)
		e.err = runner.Run(running, cfg)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-ready:
	case <-e.ended:
		stop()
		return nil, fmt.Errorf("start the service: %w", e.err)
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("start the service: %w", ctx.Err()), e.Close())
	}
	var err error
	if e.Service, err = connect(dir); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Close ends the service and waits until it has ended.
func (e *Embedded) Close() error {
	e.stop()
	<-e.ended
	return e.err
}
