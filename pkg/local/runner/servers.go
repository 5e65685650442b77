package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/semaphore"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
	"github.com/commerce-integration/service/pkg/local/eventsource"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/queueserver"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// servers take the place of DynamoDB, SQS and the identity provider.
type servers struct {
	table    *tableserver.Server // nil when another server is used
	queues   *queueserver.Server // nil when another server is used
	internal *http.Server        // of the routes
	routes   *http.ServeMux      // of queues and issuer
	issuer   *issuer.Issuer

	tableURL, queueURL, issuerURL string
	aws                           aws.Config
}

// start starts each server that the configuration does not name elsewhere. When it fails, close ends those that run.
func (s *servers) start(ctx context.Context, cfg *Config, data *folder, gateway net.Listener) (err error) {
	s.aws = AWSConfig()
	if s.tableURL = cfg.TableEndpoint; s.tableURL == "" {
		if err := s.startTable(ctx, cfg, data.path("table")); err != nil {
			return err
		}
	}
	s.routes = http.NewServeMux()
	if s.queueURL = cfg.QueueEndpoint; s.queueURL == "" {
		if err := s.openQueues(data.path("queues"), cfg.Logger); err != nil {
			return err
		}
		s.routes.Handle("/", s.queues.Handler())
	}
	if err := s.serveInternal(ctx, gateway, cfg.Logger); err != nil {
		return err
	}
	s.issuer, err = openIssuer(data, s.issuerURL)
	return err
}

func (s *servers) startTable(ctx context.Context, cfg *Config, dir string) error {
	program, err := cfg.TableServer.Install(ctx, cmp.Or(cfg.BinDir, filepath.Join(cfg.DataDir, "bin")))
	if err != nil {
		return err
	}
	if s.table, err = tableserver.Start(ctx, program, dir); err != nil {
		return err
	}
	s.tableURL = s.table.Endpoint()
	return nil
}

func (s *servers) openQueues(dir string, logger *slog.Logger) (err error) {
	s.queues, err = queueserver.Open(dir, &queueserver.Config{Logger: logger})
	if errors.Is(err, queueserver.ErrUnreadable) {
		return damaged("what the queues hold", err)
	}
	return err
}

func (s *servers) serveInternal(ctx context.Context, gateway net.Listener, logger *slog.Logger) error {
	l, err := listenBeside(ctx, gateway)
	if err != nil {
		return err
	}
	s.issuerURL = "http://" + l.Addr().String()
	if s.queues != nil {
		s.queueURL = s.issuerURL
	}
	s.internal = &http.Server{Handler: s.routes, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.internal.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the queue server ended", "error", err)
		}
	}()
	return nil
}

// listenBeside listens on the port after the gateway's, so that queue URLs stay the same from run to run, or on any free
// one when that is taken.
func listenBeside(ctx context.Context, gateway net.Listener) (net.Listener, error) {
	var config net.ListenConfig
	if addr, ok := gateway.Addr().(*net.TCPAddr); ok && addr.Port < 65535 {
		if l, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", addr.Port+1)); err == nil {
			return l, nil
		}
	}
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the queues: %w", err)
	}
	return l, nil
}

func (s *servers) dynamodb() *dynamodb.Client {
	return dynamodb.NewFromConfig(s.aws, func(o *dynamodb.Options) { o.BaseEndpoint = &s.tableURL })
}

func (s *servers) sqs() *sqs.Client {
	return sqs.NewFromConfig(s.aws, func(o *sqs.Options) { o.BaseEndpoint = &s.queueURL })
}

// messages is what event sources read queues with: without HTTP where the queues are the runner's own, since the event
// sources are a part of AWS and not of the service.
func (s *servers) messages() eventsource.QueueClient {
	if s.queues != nil {
		return s.queues
	}
	return s.sqs()
}

// release makes messages visible that the functions of a killed run had received. Otherwise they would stay invisible for
// minutes, as they do on another queue server.
func (s *servers) release(queueURL string) error {
	if s.queues == nil {
		return nil
	}
	if _, err := s.queues.Release(queueURL); err != nil {
		return fmt.Errorf("release the messages of an earlier run: %w", err)
	}
	return nil
}

// watch fails when the table server dies.
func (s *servers) watch(ctx context.Context) error {
	if s.table == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.table.Done():
		return unlessEnded(ctx, s.table.Err())
	}
}

// close ends the servers, the table server last.
func (s *servers) close() error {
	var errs []error
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	if s.internal != nil {
		errs = append(errs, s.internal.Close())
	}
	if s.table != nil {
		errs = append(errs, s.table.Close())
	}
	return errors.Join(errs...)
}

// maxLarge is how many large requests, of more than largeBytes, a client of a run's servers makes at a time. The table
// server makes one write at a time: a request of one item must wait for two of 25 items at most, and not for as many as
// an import has under way. On AWS none waits for another.
const maxLarge, largeBytes = 2, 4 << 10

// hugeBytes is the size of requests, such as that of a chunk of the index, of which a client makes one at a time, and
// after each none for as long as it took: the compactor writes dozens of them in a row, each for 20 ms of the table.
const hugeBytes = 300 << 10

// An httpClient keeps these limits.
type httpClient struct {
	inner       aws.HTTPClient
	large, huge *semaphore.Weighted // requests that are under way
}

func (c *httpClient) Do(r *http.Request) (*http.Response, error) {
	switch {
	case r.ContentLength > hugeBytes:
		if err := c.huge.Acquire(r.Context(), 1); err != nil {
			return nil, err
		}
		began := time.Now()
		defer func() { time.AfterFunc(time.Since(began), func() { c.huge.Release(1) }) }()
	case r.ContentLength > largeBytes:
		if err := c.large.Acquire(r.Context(), 1); err != nil {
			return nil, err
		}
		defer c.large.Release(1)
	}
	return c.inner.Do(r)
}

// AWSConfig is for clients of a run's servers; Info has their endpoints. Each call makes a transport of its own, with
// enough connections for all functions at once.
func AWSConfig() aws.Config {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.Proxy = nil
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
	return aws.Config{
		Region: region, Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: &httpClient{sdkhttp.New(transport), semaphore.NewWeighted(maxLarge), semaphore.NewWeighted(1)},
	}
}
