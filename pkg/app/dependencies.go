package app

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/app/metric"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/views"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Dependencies are what every function is made from.
type Dependencies struct {
	Config Config
	AWS    aws.Config
	Table  *dynamo.Table
	Logger *slog.Logger
	Clock  func() time.Time
	// Metrics gets what the functions measure; nil where nothing does.
	Metrics *metric.Recorder
	// MemoryMB is the function's memory; 0: as for 2,048 MB.
	MemoryMB int
}

// NewDependencies makes the clients that every function needs.
func NewDependencies(cfg Config, aws aws.Config, logger *slog.Logger) *Dependencies {
	return &Dependencies{
		Config: cfg, AWS: aws, Table: dynamo.New(dynamodb.NewFromConfig(aws), cfg.TableName, clock),
		Logger: logger, Clock: clock, MemoryMB: lambdacontext.MemoryLimitInMB,
	}
}

// queue returns the queue at the URL.
func (d *Dependencies) queue(url string) *queue.Queue {
	return queue.New(sqs.NewFromConfig(d.AWS), url)
}

// deliveries are the queues that feed the worker.
func (d *Dependencies) deliveries() queue.Deliveries {
	return queue.NewDeliveries(d.queue(d.Config.DeliveriesQueueURL), d.queue(d.Config.SlowDeliveriesQueueURL))
}

// park is the queue of the stream records that our code could not process.
func (d *Dependencies) park() queue.Park { return queue.NewPark(d.queue(d.Config.ParkQueueURL)) }

// indexJobs is the queue of the Compactor's jobs.
func (d *Dependencies) indexJobs() queue.IndexJobs {
	return queue.NewIndexJobs(d.queue(d.Config.IndexJobsQueueURL))
}

func (d *Dependencies) lists() *index.Lists { return index.NewLists(d.Table, dynamo.Shards) }

// memory is the function's, in bytes.
func (d *Dependencies) memory() int64 { return int64(cmp.Or(d.MemoryMB, 2048)) << 20 }

// ViewBytes is what views may take of a function's memory, loads and queries
// included: half, and of more than 1,024 MB up to five eighths. The rest is for
// records, and for what the garbage collector has not freed yet.
func ViewBytes(memory int64) int64 { return max(memory/2, memory-max(512<<20, memory*3/8)) }

// views is the view cache.
func (d *Dependencies) views() *views.Cache {
	return views.NewCache(d.Table, views.Config{MaxBytes: ViewBytes(d.memory()), Clock: d.Clock, Start: d.indexJobs(), Logger: d.Logger})
}

// outbound says where webhooks may go, to the worker that sends them and to
// the operations that take their URLs.
func (d *Dependencies) outbound() outbound.Config {
	return outbound.Config{
		AllowPrivateTargets: d.Config.AllowPrivateTargets, RefusedPorts: d.Config.RefusedPorts, Clock: d.Clock,
	}
}

// arnRules says which queues and buses webhooks may go to, to the same two.
func (d *Dependencies) arnRules() webhook.ARNRules {
	switch d.Config.ARNEndpoints {
	case "all-accounts":
		return webhook.ARNRules{Permitted: true}
	case "other-accounts":
		return webhook.ARNRules{Permitted: true, Except: d.Config.AccountID}
	}
	return webhook.ARNRules{}
}

// arns sends to queues and buses.
func (d *Dependencies) arns() *arntarget.Sender {
	all := aws.ToString(d.AWS.BaseEndpoint)
	return arntarget.New(d.AWS.Credentials, arntarget.Config{
		Rules: d.arnRules(), Clock: d.Clock,
		SQS:         cmp.Or(d.Config.SQSEndpoint, all),
		EventBridge: cmp.Or(d.Config.EventBridgeEndpoint, all),
	})
}
