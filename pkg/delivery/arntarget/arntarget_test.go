package arntarget_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/delivery/arntarget"
	"github.com/commerce-integration/service/pkg/delivery/outbound"
	"github.com/commerce-integration/service/pkg/webhook"
)

var (
	org  = value.MustID("018f0000-0000-7000-8000-000000000001")
	keys = credentials.NewStaticCredentialsProvider("AKID", "secret", "token")
	now  = time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
)

const (
	queueARN = "arn:aws:sqs:eu-central-1:222222222222:orders-018f0000-0000-7000-8000-000000000001"
	busARN   = "arn:aws:events:us-east-1:222222222222:event-bus/orders-018f0000-0000-7000-8000-000000000001"
)

// standIn is a server in AWS's place that keeps what it is sent.
type standIn struct {
	status int
	answer string

	header http.Header
	body   []byte
	host   string
}

func start(t *testing.T, status int, answer string) (*standIn, string) {
	t.Helper()
	s := &standIn{status: status, answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.header, s.host = r.Header, r.Host
		s.body, _ = io.ReadAll(r.Body)
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.answer)
	}))
	t.Cleanup(server.Close)
	return s, server.URL
}

func send(t *testing.T, provider aws.CredentialsProvider, endpoint, arn string) outbound.Outcome {
	t.Helper()
	to, ok := webhook.ParseARN(arn)
	if !ok {
		t.Fatalf("%s is no ARN", arn)
	}
	sender := arntarget.New(provider, arntarget.Config{
		Rules: webhook.ARNRules{Permitted: true}, SQS: endpoint, EventBridge: endpoint, Clock: func() time.Time { return now },
	})
	return sender.Send(t.Context(), org, to, arntarget.Event{
		Type: "order.created", Body: []byte(`{"id":"1","text":"☕ \" <"}`),
		Header: http.Header{"Webhook-Id": {"1"}, "Webhook-Timestamp": {"2"}, "Webhook-Signature": {"v1,a v1,b"}, "X-Own": {"3"}},
	}, 5*time.Second)
}

func TestCallsAreThoseOfTheAPIAndSigned(t *testing.T) {
	for _, tt := range []struct {
		name, arn, service, region, target, contentType, want string
	}{
		{
			"queue", queueARN, "sqs", "eu-central-1", "AmazonSQS.SendMessage", "application/x-amz-json-1.0",
			`{"QueueUrl":"https://sqs.eu-central-1.amazonaws.com/222222222222/orders-018f0000-0000-7000-8000-000000000001","MessageBody":"{\"id\":\"1\",\"text\":\"☕ \\\" <\"}",` +
				`"MessageAttributes":{"webhook-id":{"DataType":"String","StringValue":"1"},"webhook-signature":{"DataType":"String","StringValue":"v1,a v1,b"},"webhook-timestamp":{"DataType":"String","StringValue":"2"}}}`,
		},
		{
			"bus", busARN, "events", "us-east-1", "AWSEvents.PutEvents", "application/x-amz-json-1.1",
			`{"Entries":[{"EventBusName":"` + busARN + `","Source":"commerce-integration-webhooks","DetailType":"order.created","Detail":"{\"id\":\"1\",\"text\":\"☕ \\\" <\"}"}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, url := start(t, http.StatusOK, `{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}`)
			got := send(t, keys, url, tt.arn)
			if got.Kind != outbound.Answered || got.Status != http.StatusOK || got.Reason != "" || string(got.Body) != server.answer {
				t.Errorf("outcome %+v %s", got, got.Body)
			}
			var sent, want any
			if err := errors.Join(json.Unmarshal(server.body, &sent), json.Unmarshal([]byte(tt.want), &want)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if server.header.Get("X-Amz-Target") != tt.target || server.header.Get("Content-Type") != tt.contentType || server.header.Get("X-Amz-Security-Token") != "token" {
				t.Errorf("header %v", server.header)
			}
			checkSignature(t, server, tt.service, tt.region)
		})
	}
}

// checkSignature signs again what arrived.
func checkSignature(t *testing.T, server *standIn, service, region string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.host+"/", bytes.NewReader(server.body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Content-Type", "X-Amz-Target"} {
		r.Header.Set(name, server.header.Get(name))
	}
	pair, err := keys.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(server.body)
	if err := v4.NewSigner().SignHTTP(t.Context(), pair, r, hex.EncodeToString(hash[:]), service, region, now); err != nil {
		t.Fatal(err)
	}
	if got, want := server.header.Get("Authorization"), r.Header.Get("Authorization"); got != want {
		t.Errorf("signature\n%s, want\n%s", got, want)
	}
}

func TestAnswersOfAWSAreAttempts(t *testing.T) {
	entry := func(code string) string {
		return `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"` + code + `","ErrorMessage":"role/secret-name"}]}`
	}
	for _, tt := range []struct {
		name, arn string
		status    int
		answer    string
		want      int
		code      string
	}{
		{"no queue", queueARN, 400, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"role/secret-name"}`, 400, "QueueDoesNotExist"},
		{"denied by the queue", queueARN, 403, `{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"role/secret-name"}`, 403, "AccessDeniedException"},
		{"throttled by the queue", queueARN, 403, `{"__type":"com.amazonaws.sqs#RequestThrottled"}`, 403, "RequestThrottled"},
		{"no JSON", queueARN, 503, `role/secret-name`, 503, ""},
		{"denied by the bus", busARN, 400, `{"__type":"AccessDeniedException","message":"role/secret-name"}`, 400, "AccessDeniedException"},
		{"entry denied", busARN, 200, entry("NotAuthorizedForSourceException"), 400, "NotAuthorizedForSourceException"},
		{"entry throttled", busARN, 200, entry("ThrottlingException"), 429, "ThrottlingException"},
		{"entry failed", busARN, 200, entry("InternalFailure"), 500, "InternalFailure"},
		{"entry without code", busARN, 200, entry(""), 400, "FailedEntry"},
		{"failed", busARN, 500, `{"__type":"InternalException"}`, 500, "InternalException"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, url := start(t, tt.status, tt.answer)
			got := send(t, keys, url, tt.arn)
			reason := strings.TrimSpace(fmt.Sprintf("AWS answered %d %s", tt.want, tt.code))
			if got.Kind != outbound.Answered || got.Status != tt.want || string(got.Body) != tt.code || got.Reason != reason {
				t.Errorf("outcome %+v %q, want %d, %q and %q", got, got.Body, tt.want, tt.code, reason)
			}
		})
	}
}

type noCredentials struct{}

func (noCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("no role")
}

func TestMissingCredentialsAreOurs(t *testing.T) {
	server, url := start(t, http.StatusOK, `{}`)
	if got := send(t, noCredentials{}, url, queueARN); got.Kind != outbound.Ours || got.Err == nil || server.body != nil {
		t.Errorf("outcome %+v, sent %q", got, server.body)
	}
}

func TestAnotherOrganizationsTargetIsForbidden(t *testing.T) {
	for _, arn := range []string{queueARN, busARN} {
		server, url := start(t, http.StatusOK, `{}`)
		other := strings.Replace(arn, org.String(), "018f0000-0000-7000-8000-000000000002", 1)
		if got := send(t, keys, url, other); got.Kind != outbound.Forbidden || got.Reason == "" || server.body != nil {
			t.Errorf("%s: outcome %+v, sent %q", other, got, server.body)
		}
	}
}
