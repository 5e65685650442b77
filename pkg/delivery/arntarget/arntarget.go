// Package arntarget sends events to the SQS queues and EventBridge buses that
// endpoints name by ARN. An attempt is one signed request to AWS in the ARN's
// region, with the caller's own credentials; its outcome has the terms of an
// HTTP receiver's: AWS's status, and as body what AWS answered on success and
// the code of its error otherwise. Whatever AWS answers is an attempt on the
// receiver's account, whose policy, queue or region it is as a rule; only
// missing credentials are ours. The worker decides what to send and when.
//
// # What arrives
//
// A queue gets the body, byte for byte as it was signed, and the three headers
// of Standard Webhooks as message attributes, named in lower case:
// webhook-id, webhook-timestamp and webhook-signature. A bus gets an event
// with [Source] as its source, the event's type as detail-type and the payload
// as detail. EventBridge parses the detail, so that no signature could be
// checked there.
//
// # Without the SDK's clients
//
// The requests are written and signed here. The SDK's client of EventBridge
// would add half a megabyte to the worker's 10.6 MB; the signer is linked anyway, and
// the client of package outbound brings deadlines, bounded answers and reasons
// that the endpoint's owner can read.
package arntarget

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/webhook"
)

// Source is the source of the events that a bus gets.
const Source = "commerce-integration-webhooks"

// Config adapts a sender.
type Config struct {
	Rules webhook.ARNRules
	// SQS and EventBridge are the URLs of other servers than AWS's; "" is AWS's.
	SQS, EventBridge string
	// Clock is the time that requests are signed with.
	Clock func() time.Time
}

// Sender sends events. It is safe for concurrent use.
type Sender struct {
	credentials aws.CredentialsProvider
	client      *outbound.Client
	signer      *v4.Signer
	cfg         Config
}

// New returns a sender that calls AWS with the credentials.
func New(credentials aws.CredentialsProvider, cfg Config) *Sender {
	return &Sender{
		credentials: credentials, signer: v4.NewSigner(), cfg: cfg,
		// The host is AWS's, which a VPC may resolve to an address of its own.
		client: outbound.New(outbound.Config{AllowPrivateTargets: true, RefusedPorts: []uint16{}, Clock: cfg.Clock}),
	}
}

// Event is what an attempt sends.
type Event struct {
	Type   string
	Header http.Header // of which the queue gets those of Standard Webhooks
	Body   []byte
}

// Send sends the event within timeout to what the ARN names. An ARN that the
// organization may not have is [outbound.Forbidden].
func (s *Sender) Send(ctx context.Context, org value.ID, to webhook.ARN, event Event, timeout time.Duration) outbound.Outcome {
	if reason := s.cfg.Rules.Refusal(to, org); reason != "" {
		reason = "the URL must " + reason
		return outbound.Outcome{Kind: outbound.Forbidden, Reason: reason, Err: fmt.Errorf("%s: %s", to, reason)}
	}
	req, body, err := s.request(ctx, to, event)
	if err != nil {
		return outbound.Outcome{Kind: outbound.Ours, Reason: "we could not sign the request", Err: err}
	}
	answer := s.client.Post(ctx, req.URL.String(), req.Header, body, timeout)
	if answer.Kind == outbound.Answered {
		explain(&answer)
	}
	return answer
}

type attribute struct {
	DataType    string
	StringValue string
}

type sendMessage struct {
	QueueURL          string `json:"QueueUrl"`
	MessageBody       string
	MessageAttributes map[string]attribute
}

type busEvent struct {
	EventBusName, Source, DetailType, Detail string
}

type putEvents struct{ Entries []busEvent }

// request writes and signs the call for an event.
func (s *Sender) request(ctx context.Context, to webhook.ARN, event Event) (req *http.Request, body []byte, err error) {
	service, operation, contentType, endpoint := "sqs", "AmazonSQS.SendMessage", "application/x-amz-json-1.0", s.cfg.SQS
	var input any
	if to.Bus {
		service, operation, contentType, endpoint = "events", "AWSEvents.PutEvents", "application/x-amz-json-1.1", s.cfg.EventBridge
		input = putEvents{[]busEvent{{to.String(), Source, event.Type, string(event.Body)}}}
	} else {
		message := sendMessage{"https://sqs." + to.Region + ".amazonaws.com/" + to.Account + "/" + to.Name, string(event.Body), map[string]attribute{}}
		for _, name := range []string{webhook.HeaderID, webhook.HeaderTimestamp, webhook.HeaderSignature} {
			message.MessageAttributes[strings.ToLower(name)] = attribute{"String", event.Header.Get(name)}
		}
		input = message
	}
	if body, err = json.Marshal(input); err != nil {
		return nil, nil, fmt.Errorf("write the call: %w", err)
	}
	endpoint = cmp.Or(endpoint, "https://"+service+"."+to.Region+".amazonaws.com")
	if req, err = http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(endpoint, "/")+"/", bytes.NewReader(body)); err != nil {
		return nil, nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Target", operation)
	req.Header.Set("User-Agent", webhook.UserAgent)
	credentials, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find credentials: %w", err)
	}
	hash := sha256.Sum256(body)
	if err := s.signer.SignHTTP(ctx, credentials, req, hex.EncodeToString(hash[:]), service, to.Region, s.cfg.Clock()); err != nil {
		return nil, nil, fmt.Errorf("sign the request: %w", err)
	}
	return req, body, nil
}

// explain puts the code of an error in the place of AWS's text, which names
// the service's own role. An entry that EventBridge did not take is in an
// answer 200; it gets the status that fits its code.
func explain(answer *outbound.Outcome) {
	var out struct {
		Type             string `json:"__type"`
		FailedEntryCount int
		Entries          []struct{ ErrorCode string }
	}
	err := json.Unmarshal(answer.Body, &out)
	code := out.Type[strings.LastIndexByte(out.Type, '#')+1:]
	if err == nil && answer.Status == http.StatusOK && out.FailedEntryCount > 0 && len(out.Entries) > 0 {
		code = cmp.Or(out.Entries[0].ErrorCode, "FailedEntry")
		switch {
		case strings.HasPrefix(code, "Internal"):
			answer.Status = http.StatusInternalServerError
		case strings.HasPrefix(code, "Throttl"):
			answer.Status = http.StatusTooManyRequests
		default:
			answer.Status = http.StatusBadRequest
		}
	}
	if answer.Status >= http.StatusOK && answer.Status < http.StatusMultipleChoices {
		return
	}
	answer.Reason, answer.Body = strings.TrimSpace(fmt.Sprintf("AWS answered %d %s", answer.Status, code)), []byte(code)
}
