package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/pause"
)

// instance is the whole service as a process of its own.
type instance struct {
	*child
	info   runner.Info
	queues *sqs.Client
	issuer *issuer.Issuer
}

// start starts the service with no data, with the table server of the URL or,
// where that is "", one of its own.
func (w *webhooks) start(ctx context.Context, name, tableURL string) (*instance, error) {
	dir := filepath.Join(w.dir, name)
	child, err := startChild(w.cfg.Child, w.cfg.Log, childOrder{Profile: w.profileOf(name), Service: &serviceOrder{
		Template: w.cfg.Template, BinDir: w.cfg.BinDir, DataDir: dir, TableEndpoint: tableURL,
	}})
	if err != nil {
		return nil, err
	}
	i := &instance{child: child}
	if err := i.connect(ctx, dir); err != nil {
		return nil, errors.Join(err, child.close())
	}
	return i, nil
}

func (i *instance) connect(ctx context.Context, dir string) (err error) {
	ready, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := i.hear(ready, &i.info); err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	i.queues = sqs.NewFromConfig(runner.AWSConfig(), func(o *sqs.Options) { o.BaseEndpoint = &i.info.SQSEndpoint })
	if i.issuer, err = runner.OpenIssuer(dir); err != nil {
		return fmt.Errorf("sign tokens for the service: %w", err)
	}
	return nil
}

// quiet waits until nothing is left in the queues that events go through, so
// that all bookkeeping is done and nothing can come a second time.
func (i *instance) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, standstill)
	defer cancel()
	for {
		left := i.left(ctx)
		if left == nil {
			return nil
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return errors.Join(left, err)
		}
	}
}

// left is an error that tells what is in the queues that events go through;
// nil when they are empty.
func (i *instance) left(ctx context.Context) error {
	var counts [4]int
	for n, url := range []string{i.info.RecordsQueueURL, i.info.ImportsQueueURL, i.info.DeliveriesQueueURL, i.info.SlowDeliveriesQueueURL} {
		var err error
		if counts[n], err = i.messages(ctx, url); err != nil {
			return err
		}
	}
	if counts == [4]int{} {
		return nil
	}
	return fmt.Errorf("left in the queues are %d messages of records, %d of imports, %d deliveries and %d of slow endpoints", counts[0], counts[1], counts[2], counts[3])
}

// messages is how many a queue holds, whatever their state.
func (i *instance) messages(ctx context.Context, url string) (sum int, err error) {
	out, err := i.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}})
	if err != nil {
		return 0, fmt.Errorf("count the messages of %s: %w", url, err)
	}
	for name, text := range out.Attributes {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("count the messages of %s: %s is %q", url, name, text)
		}
		sum += n
	}
	return sum, nil
}
