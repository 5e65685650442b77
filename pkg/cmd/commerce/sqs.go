package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/commerce-integration/service/pkg/importer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/sdkhttp"
	"github.com/spf13/cobra"
)

// queueTarget says which SQS a command talks to, by its flags.
type queueTarget struct {
	data     string
	endpoint string
	queueURL string
}

func (t *queueTarget) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.data, "data", defaultData, "data directory of the local runner")
	cmd.Flags().StringVar(&t.endpoint, "endpoint", "", "SQS endpoint (default: the local runner's, or AWS)")
	cmd.Flags().StringVar(&t.queueURL, "queue-url", "", "URL of the queue (default: the local runner's)")
}

// resolve settles where the queue is. With neither a queue URL nor a local
// runner there is none; a queue URL that is not the local runner's means AWS,
// whose region and credentials come from the environment.
func (t *queueTarget) resolve(ctx context.Context, queue func(*runner.Info) string) (*sqs.Client, error) {
	file, err := runner.ReadInfo(t.data)
	if err != nil && !(errors.Is(err, runner.ErrNotRunning) && t.queueURL != "") {
		return nil, fmt.Errorf("%w, or name a queue with --queue-url", err)
	}
	if file != nil {
		if t.queueURL == "" {
			t.queueURL = queue(file)
		}
		if t.endpoint == "" && sameHost(t.queueURL, file.SQSEndpoint) {
			t.endpoint = file.SQSEndpoint
		}
	}
	return newSQSClient(ctx, t.endpoint)
}

func sameHost(a, b string) bool {
	ua, erra := url.Parse(a)
	ub, errb := url.Parse(b)
	return erra == nil && errb == nil && ua.Host == ub.Host
}

// newSQSClient talks to an endpoint on this machine with made-up credentials,
// which it does not check, and to anything else with those of the environment.
func newSQSClient(ctx context.Context, endpoint string) (client *sqs.Client, err error) {
	cfg := runner.AWSConfig()
	if !isLoopback(endpoint) {
		if cfg, err = awsConfig(ctx); err != nil {
			return nil, err
		}
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}

// awsConfig is that of the environment.
func awsConfig(ctx context.Context, options ...func(*config.LoadOptions) error) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, append(options, config.WithHTTPClient(awshttp.NewBuildableClient()))...)
	if err != nil {
		return cfg, fmt.Errorf("load the AWS configuration: %w", err)
	}
	cfg.HTTPClient = sdkhttp.New(cfg.HTTPClient)
	return cfg, nil
}

func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// batchAPI is what the sender needs of SQS.
type batchAPI interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// queueSender sends batches to one queue. The group is the organization, so
// that one tenant's import does not delay the others' changes.
type queueSender struct {
	api      batchAPI
	queueURL string
	group    string
	pause    func(context.Context, time.Duration) error
}

const sendAttempts = 5

// Send repeats what the queue was too busy for; a message that it refuses, or
// that still fails after five attempts, is an error.
func (s *queueSender) Send(ctx context.Context, batch importer.Batch) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch.Messages))
	for i, body := range batch.Messages {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), MessageGroupId: aws.String(s.group),
		}
	}
	for attempt := 1; ; attempt++ {
		out, err := s.api.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.queueURL, Entries: entries})
		if err != nil {
			return fmt.Errorf("queue %s: %w", s.queueURL, err)
		}
		if len(out.Failed) == 0 {
			return nil
		}
		again, err := failedEntries(entries, out.Failed)
		if err == nil && attempt == sendAttempts {
			err = fmt.Errorf("%s: %s", aws.ToString(out.Failed[0].Code), aws.ToString(out.Failed[0].Message))
		}
		if err != nil {
			return fmt.Errorf("queue %s: %w", s.queueURL, err)
		}
		entries = again
		if err := s.pause(ctx, time.Duration(attempt*attempt)*100*time.Millisecond); err != nil {
			return err
		}
	}
}

func failedEntries(sent []types.SendMessageBatchRequestEntry, failed []types.BatchResultErrorEntry) ([]types.SendMessageBatchRequestEntry, error) {
	var again []types.SendMessageBatchRequestEntry
	for _, f := range failed {
		if f.SenderFault {
			return nil, fmt.Errorf("the message was refused: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
		}
		for _, e := range sent {
			if aws.ToString(e.Id) == aws.ToString(f.Id) {
				again = append(again, e)
			}
		}
	}
	return again, nil
}
