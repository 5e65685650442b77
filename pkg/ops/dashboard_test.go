package ops

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

const listed = `{"StackResourceSummaries": [
  {"LogicalResourceId": "DispatcherFunction", "PhysicalResourceId": "shop-Dispatcher-1", "ResourceType": "AWS::Lambda::Function", "ResourceStatus": "CREATE_COMPLETE"},
  {"LogicalResourceId": "ApiFunction", "PhysicalResourceId": "shop-Api-1", "ResourceType": "AWS::Lambda::Function"},
  {"LogicalResourceId": "IngestFunction", "PhysicalResourceId": "shop-Ingest-1", "ResourceType": "AWS::Lambda::Function"},
  {"LogicalResourceId": "WorkerFunction", "PhysicalResourceId": "shop-Worker-1", "ResourceType": "AWS::Lambda::Function"},
  {"LogicalResourceId": "IndexerFunction", "PhysicalResourceId": "shop-Indexer-1", "ResourceType": "AWS::Lambda::Function"}]}
`

const listedState = `{"StackResourceSummaries": [
  {"LogicalResourceId": "RecordsQueue", "PhysicalResourceId": "https://sqs.eu-north-1.amazonaws.com/1/shop-state-RecordsQueue-1", "ResourceType": "AWS::SQS::Queue"},
  {"LogicalResourceId": "Table", "PhysicalResourceId": "shop-state-Table-1", "ResourceType": "AWS::DynamoDB::Table"}]}`

func TestDashboardShowsTheStacksResources(t *testing.T) {
	resources, err := ReadStackResources(strings.NewReader(listed + listedState))
	if err != nil {
		t.Fatal(err)
	}
	body, err := Dashboard("eu-north-1", "shop", resources)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Widgets []widget }
	if err := json.Unmarshal(body, &dashboard, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	shown := map[string][][]string{}
	for _, w := range dashboard.Widgets {
		shown[w.Properties.Title] = w.Properties.Metrics
		if w.Properties.Region != "eu-north-1" {
			t.Errorf("%s is of region %q", w.Properties.Title, w.Properties.Region)
		}
	}
	for title, want := range map[string][]string{
		"Requests":         {"AWS/ApiGateway", "5XXError", "ApiName", "shop"},
		"Stream age (ms)":  {"AWS/Lambda", "IteratorAge", "FunctionName", "shop-Dispatcher-1"},
		"Messages waiting": {"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "shop-state-RecordsQueue-1"},
		"Table":            {"AWS/DynamoDB", "WriteThrottleEvents", "TableName", "shop-state-Table-1"},
		"Answers":          {"Commerce/shop", "ServerErrors", "FunctionName", "shop-Api-1"},
	} {
		if !slices.ContainsFunc(shown[title], func(metric []string) bool { return slices.Equal(metric, want) }) {
			t.Errorf("%s: got %v, want %v among them", title, shown[title], want)
		}
	}
	if len(shown["Stream age (ms)"]) != 2 {
		t.Errorf("stream age of %v, want dispatcher and indexer", shown["Stream age (ms)"])
	}
}

func TestDashboardNeedsBothStacks(t *testing.T) {
	for _, in := range []string{listed, listedState, "{", ""} {
		resources, err := ReadStackResources(strings.NewReader(in))
		if err == nil {
			_, err = Dashboard("eu-north-1", "shop", resources)
		}
		if err == nil {
			t.Errorf("%q makes a dashboard", in)
		}
	}
}
