package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// duplicate is a delivery's message that was sent once more.
type duplicate struct {
	at       time.Time // from which it may be received
	delivery value.ID
}

// messageTamperer receives messages from the queues of deliveries and lets them
// become visible again late. It sends some of them once more: at once, or so
// much later that they come after others.
type messageTamperer struct {
	random *rand.Rand
	queue  func(name string) (*sqs.Client, string)

	mu     sync.Mutex
	held   int // messages
	copies []duplicate
}

func (m *messageTamperer) counts() (held int, copies []duplicate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held, slices.Clone(m.copies)
}

// run tampers with a batch a few times a second until ctx ends, mostly of the
// main lane.
func (m *messageTamperer) run(ctx context.Context) {
	const interval = 300 * time.Millisecond
	const slow = 4 // one batch in so many is of the slow lane
	for pause.For(ctx, interval) == nil {
		name := "DeliveriesQueue"
		if m.random.IntN(slow) == 0 {
			name = "SlowDeliveriesQueue"
		}
		client, url := m.queue(name)
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 1 + m.random.Int32N(12),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			continue // the queue is away with the service
		}
		for i := range out.Messages {
			m.tamper(ctx, client, url, &out.Messages[i])
		}
	}
}

func (m *messageTamperer) tamper(ctx context.Context, client *sqs.Client, url string, message *types.Message) {
	m.mu.Lock()
	m.held++
	m.mu.Unlock()
	ref, err := webhook.ParseDeliveryRef(aws.ToString(message.Body))
	if err != nil || m.random.IntN(2) == 0 {
		return
	}
	const latest = 20 // seconds
	delay := max(0, m.random.Int32N(2*latest)-latest)
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: message.Body, DelaySeconds: delay}
	if group, ok := message.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]; ok {
		in.MessageGroupId = &group
	}
	sent := time.Now()
	// When the acknowledgement is lost, the copy may be there all the same.
	_, _ = client.SendMessage(ctx, in)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.copies = append(m.copies, duplicate{sent.Add(time.Duration(delay) * time.Second), ref.DeliveryID})
}
