package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

// startPatience bounds the start of the service, an installation of the table
// server included.
const startPatience = 2 * time.Minute

// service is the whole service, run in this process as commerce run does.
type service struct {
	info     *runner.Info
	table    *dynamo.Table
	client   *dynamodb.Client // with the SDK's own settings, unmetered
	queues   *sqs.Client
	shop     *catalogue
	products int // that it holds

	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended is closed
}

// startService runs the service with its data in dir until close, with an
// application that may make a million requests a minute.
func startService(ctx context.Context, cfg *Config, dir string, attach func(*aws.Config)) (*service, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &service{stop: stop, ended: make(chan struct{})}
	ready := make(chan *runner.Info, 1)
	go func() {
		defer close(s.ended)
		s.err = runner.Run(running, runner.Config{
			Addr: "127.0.0.1:0", DataDir: dir, BinDir: cfg.BinDir, Template: cfg.Template, NoDemo: true,
			Logger: slog.New(slog.NewTextHandler(cfg.Log, &slog.HandlerOptions{Level: slog.LevelWarn})),
			AWS:    attach,
			Ready:  func(info *runner.Info) { ready <- info },
		})
	}()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	select {
	case s.info = <-ready:
	case <-s.ended:
		stop()
		return nil, fmt.Errorf("start the service: %w", s.err)
	case <-patience.C:
		return nil, errors.Join(fmt.Errorf("the service did not start within %s", startPatience), s.close())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.close())
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *service) connect(ctx context.Context) error {
	organization, err := value.ParseID(s.info.OrganizationID)
	if err != nil {
		return fmt.Errorf("the service's organization: %w", err)
	}
	application, err := value.ParseID(s.info.ApplicationID)
	if err != nil {
		return fmt.Errorf("the service's application: %w", err)
	}
	local := runner.AWSConfig()
	s.shop = &catalogue{organization: organization}
	s.client = dynamodb.NewFromConfig(local, func(o *dynamodb.Options) { o.BaseEndpoint = &s.info.DynamoDBEndpoint })
	s.queues = sqs.NewFromConfig(local, func(o *sqs.Options) { o.BaseEndpoint = &s.info.SQSEndpoint })
	s.table = dynamo.New(s.client, s.info.TableName, time.Now)
	_, err = s.table.ChangeApplication(ctx, organization, application, func(a *account.Application) (bool, error) {
		return a.SetRateLimit(account.MaxRateLimit, value.TimeOf(time.Now()))
	})
	return err
}

// close ends the service and waits until it has ended.
func (s *service) close() error {
	s.stop()
	<-s.ended
	return s.err
}
