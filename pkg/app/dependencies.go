package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/apptoken"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/outbound"
	"github.com/commerce-integration/service/pkg/sealed"
	"github.com/commerce-integration/service/pkg/sqsqueue"
)

// Dependencies are what every function is made from.
type Dependencies struct {
	Config Config
	AWS    aws.Config
	Table  *dynamo.Table
	Logger *slog.Logger
	Clock  func() time.Time

	endpoints Endpoints
}

// Endpoints are those of other servers than AWS's; "" is AWS's, or what the
// environment says.
type Endpoints struct{ DynamoDB, SQS string }

// NewDependencies makes the clients that every function needs.
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

// queue returns the queue at the URL.
func (d *Dependencies) queue(url string) *sqsqueue.Queue {
	client := sqs.NewFromConfig(d.AWS, func(o *sqs.Options) {
		if d.endpoints.SQS != "" {
			o.BaseEndpoint = &d.endpoints.SQS
		}
	})
	return sqsqueue.New(client, url)
}

// deliveries are the queues that feed the worker.
func (d *Dependencies) deliveries() sqsqueue.Deliveries {
	return sqsqueue.NewDeliveries(d.queue(d.Config.DeliveriesQueueURL), d.queue(d.Config.SlowDeliveriesQueueURL))
}

// park is the queue of the stream records that our code could not process.
func (d *Dependencies) park() sqsqueue.Park { return sqsqueue.NewPark(d.queue(d.Config.ParkQueueURL)) }

// indexJobs is the queue of the Compactor's jobs.
func (d *Dependencies) indexJobs() sqsqueue.IndexJobs {
	return sqsqueue.NewIndexJobs(d.queue(d.Config.IndexJobsQueueURL))
}

func (d *Dependencies) lists() *index.Lists { return index.NewLists(d.Table, dynamo.Shards) }

// views is the view cache. It may take half of the function's memory, loads and
// queries included; the rest is for records, and for what the garbage collector
// has not freed yet.
func (d *Dependencies) views() *views.Cache {
	maxBytes := int64(lambdacontext.MemoryLimitInMB) << 20 / 2
	if maxBytes == 0 {
		maxBytes = 1 << 30
	}
	return views.NewCache(d.Table, views.Config{MaxBytes: maxBytes, Clock: d.Clock, Start: d.indexJobs(), Logger: d.Logger})
}

// outbound says where webhooks may go, to the worker that sends them and to
// the operations that take their URLs.
func (d *Dependencies) outbound() outbound.Config {
	return outbound.Config{
		AllowPrivateTargets: d.Config.AllowPrivateTargets, RefusedPorts: d.Config.RefusedPorts, Clock: d.Clock,
	}
}

// secrets returns the box that keeps webhook secrets and answers.
func (d *Dependencies) secrets(ctx context.Context) (*sealed.Box, error) {
	key := d.Config.ServiceKey
	if key == nil {
		var err error
		if key, err = d.fetchServiceKey(ctx); err != nil {
			return nil, err
		}
	}
	return sealed.NewBox(key)
}

// fetchServiceKey derives the key from the secret's text, which Secrets
// Manager generates: 64 random letters and digits, more than the key holds.
func (d *Dependencies) fetchServiceKey(ctx context.Context) ([]byte, error) {
	if d.Config.ServiceKeySecretARN == "" {
		return nil, errors.New("neither SERVICE_KEY nor SERVICE_KEY_SECRET_ARN is set")
	}
	text, _, err := d.secretText(ctx, d.Config.ServiceKeySecretARN, stageCurrent)
	if err != nil {
		return nil, fmt.Errorf("read the service key: %w", err)
	}
	key := sha256.Sum256([]byte(text))
	return key[:], nil
}

// The versions of a secret that Secrets Manager keeps by these names: a new
// value makes the current one the previous.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

// secretText reads a version of a secret, and when that was made.
func (d *Dependencies) secretText(ctx context.Context, arn, stage string) (text string, created time.Time, err error) {
	out, err := secretsmanager.NewFromConfig(d.AWS).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn, VersionStage: &stage})
	if err != nil {
		return "", created, err
	}
	if text = aws.ToString(out.SecretString); text == "" {
		return "", created, errors.New("the secret is empty")
	}
	return text, aws.ToTime(out.CreatedDate), nil
}

// signingSecrets reads what the keys of application tokens come from.
func (d *Dependencies) signingSecrets(ctx context.Context) (s apptoken.Secrets, err error) {
	if given := strings.Fields(d.Config.SigningSecrets); len(given) > 0 {
		s.Current = given[0]
		if len(given) > 1 {
			s.Previous = given[1]
		}
		return s, nil
	}
	if d.Config.SigningSecretARN == "" {
		return s, errors.New("neither SIGNING_SECRETS nor SIGNING_SECRET_ARN is set")
	}
	if s.Current, s.Created, err = d.secretText(ctx, d.Config.SigningSecretARN, stageCurrent); err != nil {
		return s, fmt.Errorf("read the signing secret: %w", err)
	}
	previous, created, err := d.secretText(ctx, d.Config.SigningSecretARN, stagePrevious)
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		return s, nil // it was never rotated
	}
	if err != nil {
		return s, fmt.Errorf("read the signing secret before: %w", err)
	}
	s.Previous = previous
	if created.After(s.Created) {
		s.Created = created
	}
	return s, nil
}
