package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// Service is a running service with clients of its servers.
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

// Table is a table server of the lab's own behind a proxy that can fail and delay. Env has a service use it, which
// does not trim its stream then.
type Table struct {
	*faults.Proxy
	Env    string
	server *tableserver.Server
}

// StartTable starts a table server with its tables in a folder.
func StartTable(ctx context.Context, binDir, dir string, cfg faults.Config) (*Table, error) {
	program, err := tableserver.Install(ctx, binDir)
	if err != nil {
		return nil, err
	}
	server, err := tableserver.Start(ctx, program, dir)
	if err != nil {
		return nil, err
	}
	proxy, err := faults.New(server.Endpoint(), cfg)
	if err == nil {
		err = proxy.Start("127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &Table{Proxy: proxy, Env: "AWS_ENDPOINT_URL_DYNAMODB=" + proxy.Endpoint("functions"), server: server}, nil
}

// Close ends the proxy and the server.
func (t *Table) Close() error { return errors.Join(t.Proxy.Close(), t.server.Close()) }
