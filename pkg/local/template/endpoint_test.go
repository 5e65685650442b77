package template

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// hosts notes where requests would go and sends none.
type hosts []string

func (h *hosts) Do(r *http.Request) (*http.Response, error) {
	*h = append(*h, r.URL.Host)
	return nil, errors.New("not sent")
}

// The template declares the endpoint variables empty, so that sam local can
// override them. In AWS they must be as good as absent.
func TestEmptyEndpointVariablesLeadToAWS(t *testing.T) {
	m, _, _ := stack(t)
	set := 0
	for name, value := range m.Functions["api"].Environment {
		if strings.HasPrefix(name, "AWS_ENDPOINT_URL_") {
			t.Setenv(name, value)
			set++
		}
	}
	if set != 2 {
		t.Fatalf("the template declares %d endpoint variables, want 2", set)
	}
	var asked hosts
	cfg, err := config.LoadDefaultConfig(t.Context(),
		config.WithRegion("us-east-1"), config.WithRetryMaxAttempts(1),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("id", "secret", "")))
	if err != nil {
		t.Fatal(err)
	}
	tables := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.HTTPClient = &asked })
	if _, err := tables.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err == nil {
		t.Error("ListTables had an answer")
	}
	queues := sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.HTTPClient = &asked })
	if _, err := queues.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
		t.Error("ListQueues had an answer")
	}
	want := hosts{"dynamodb.us-east-1.amazonaws.com", "sqs.us-east-1.amazonaws.com"}
	if strings.Join(asked, " ") != strings.Join(want, " ") {
		t.Errorf("asked %v, want %v", asked, want)
	}
}
