package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

// defaultData is the folder in which the local runner keeps its data.
const defaultData = ".local"

// target says, by flags, which table, queue and organization a command works
// on: by default those of the local runner, otherwise those in AWS, whose
// region and credentials come from the environment. A command declares only
// the flags that it needs.
type target struct {
	data            string
	table, queueURL string
	organization    value.ID
}

func (t *target) dataFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.data, "data", defaultData, "data folder of the local runner")
}

func (t *target) tableFlags(cmd *cobra.Command) {
	t.dataFlag(cmd)
	cmd.Flags().StringVar(&t.table, "table", "", "name of a table in AWS, instead of the local runner's")
}

func (t *target) queueFlags(cmd *cobra.Command) {
	t.dataFlag(cmd)
	cmd.Flags().StringVar(&t.queueURL, "queue-url", "", "URL of the queue (default: the local runner's)")
}

// openTable returns the table, and the local runner's description of itself
// unless the table is in AWS. There a busy table gets more retries than within
// a request.
func (t *target) openTable(ctx context.Context) (*dynamo.Table, *runner.Info, error) {
	if t.table != "" {
		const attempts = 10
		cfg, err := awsConfig(ctx, config.WithRetryMaxAttempts(attempts))
		if err != nil {
			return nil, nil, err
		}
		return dynamo.New(dynamodb.NewFromConfig(cfg), t.table, time.Now), nil, nil
	}
	info, err := runner.ReadInfo(t.data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w, or name a table with --table", err)
	}
	client := dynamodb.NewFromConfig(runner.AWSConfig(), func(o *dynamodb.Options) { o.BaseEndpoint = &info.DynamoDBEndpoint })
	return dynamo.New(client, info.TableName, time.Now), info, nil
}

// openOrganization returns the table and the named organization, or the local
// runner's.
func (t *target) openOrganization(ctx context.Context) (*dynamo.Table, value.ID, error) {
	table, info, err := t.openTable(ctx)
	if err != nil {
		return nil, value.ID{}, err
	}
	switch {
	case !t.organization.IsZero():
		return table, t.organization, nil
	case info == nil:
		return nil, value.ID{}, wrongUsage("--organization: required with --table")
	}
	org, err := value.ParseID(info.OrganizationID)
	return table, org, err
}

// openQueue returns a client for the queue that --queue-url names, or for the
// local runner's queue, whose URL it fills in.
func (t *target) openQueue(ctx context.Context, local func(*runner.Info) string) (*sqs.Client, error) {
	client, info, err := t.openSQS(ctx, "name a queue with --queue-url")
	if err == nil && t.queueURL == "" {
		t.queueURL = local(info)
	}
	return client, err
}

// openSQS returns a client for the queue that --queue-url names, or for the local
// runner's queues with its description of itself. Advice says how to do without a
// runner.
func (t *target) openSQS(ctx context.Context, advice string) (*sqs.Client, *runner.Info, error) {
	if t.queueURL != "" {
		client, err := newSQSClient(ctx, t.queueURL)
		return client, nil, err
	}
	info, err := runner.ReadInfo(t.data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w, or %s", err, advice)
	}
	client, err := newSQSClient(ctx, info.SQSEndpoint)
	return client, info, err
}

// deadLetterARN returns the ARN of the dead letter queue in the queue's redrive
// policy.
func (t *target) deadLetterARN(ctx context.Context, client *sqs.Client) (string, error) {
	arn, err := ops.DeadLetterARN(ctx, client, t.queueURL)
	if err == nil && arn == "" {
		err = fmt.Errorf("queue %s has no redrive policy", t.queueURL)
	}
	return arn, err
}

// newSQSClient uses the server of a URL on this machine with made-up credentials,
// which nobody checks, and AWS as the environment says for any other.
func newSQSClient(ctx context.Context, queueURL string) (*sqs.Client, error) {
	u, err := url.Parse(queueURL)
	if err == nil && isLoopback(u.Hostname()) {
		return sqs.NewFromConfig(runner.AWSConfig(), func(o *sqs.Options) { o.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host) }), nil
	}
	cfg, err := awsConfig(ctx)
	return sqs.NewFromConfig(cfg), err
}

func awsConfig(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, append(options,
		config.WithHTTPClient(awshttp.NewBuildableClient()), config.WithLogger(logging.Nop{}))...)
	if err != nil {
		return cfg, fmt.Errorf("load the AWS configuration: %w", err)
	}
	if client, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok { // as given, with the user's certificates
		cfg.HTTPClient = sdkhttp.New(client.GetTransport())
	}
	return cfg, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
