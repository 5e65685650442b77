package app

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// requests notes where requests would go and sends none.
type requests []*http.Request

func (r *requests) Do(request *http.Request) (*http.Response, error) {
	*r = append(*r, request)
	return nil, errors.New("not sent")
}

func TestTheSDKIsConfiguredByVariables(t *testing.T) {
	lambda := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "role", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
	}
	// The template declares the endpoint variables empty, so that sam local can
	// override them. In AWS they must be as good as absent.
	for name, value := range dynamotest.Model(t).Functions["api"].Environment {
		if strings.HasPrefix(name, "AWS_ENDPOINT_URL_") {
			lambda[name] = value
		}
	}
	if len(lambda) != 6 {
		t.Fatalf("the template declares %d endpoint variables, want 2", len(lambda)-4)
	}
	for name, tt := range map[string]struct {
		set  map[string]string
		want string
	}{
		"Lambda":         {nil, "dynamodb.us-east-1.amazonaws.com sqs.us-east-1.amazonaws.com secretsmanager.us-east-1.amazonaws.com"},
		"another region": {map[string]string{"AWS_REGION": "eu-west-2"}, "dynamodb.eu-west-2.amazonaws.com sqs.eu-west-2.amazonaws.com secretsmanager.eu-west-2.amazonaws.com"},
		"one server": {
			map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_SECRETS_MANAGER": "http://127.0.0.1:2"},
			"127.0.0.1:1 127.0.0.1:1 127.0.0.1:2",
		},
		"a table": {map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:3"}, "127.0.0.1:3 sqs.us-east-1.amazonaws.com secretsmanager.us-east-1.amazonaws.com"},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := func(name string) string {
				if value, ok := tt.set[name]; ok {
					return value
				}
				return lambda[name]
			}
			cfg, err := awsConfigFrom(getenv)
			if err != nil {
				t.Fatal(err)
			}
			var asked requests
			cfg.HTTPClient, cfg.RetryMaxAttempts = &asked, 1
			_, tables := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), &dynamodb.ListTablesInput{})
			_, queues := sqs.NewFromConfig(cfg).ListQueues(t.Context(), &sqs.ListQueuesInput{})
			_, secrets := secretsmanager.NewFromConfig(cfg).ListSecrets(t.Context(), &secretsmanager.ListSecretsInput{})
			if tables == nil || queues == nil || secrets == nil {
				t.Error("a request had an answer")
			}
			var hosts []string
			for _, r := range asked {
				hosts = append(hosts, r.URL.Host)
				if h := r.Header; h.Get("X-Amz-Security-Token") != "session" || !strings.Contains(h.Get("Authorization"), "Credential=role/") {
					t.Errorf("%s: the request is not signed by the role: %v", r.URL.Host, h)
				}
			}
			if got := strings.Join(hosts, " "); got != tt.want {
				t.Errorf("asked %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTheSDKNeedsARegionAndCredentials(t *testing.T) {
	for _, absent := range []string{"", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		_, err := awsConfigFrom(func(name string) string { return strings.TrimPrefix(name, absent) })
		if (err == nil) != (absent == "") {
			t.Errorf("without %q: %v", absent, err)
		}
	}
}
