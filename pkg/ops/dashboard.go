package ops

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StackResource is a resource as aws cloudformation list-stack-resources prints it.
type StackResource struct {
	LogicalResourceID  string `json:"LogicalResourceId"`
	PhysicalResourceID string `json:"PhysicalResourceId"`
	ResourceType       string `json:"ResourceType"`
}

// ReadStackResources reads the output of aws cloudformation list-stack-resources, once for each stack.
func ReadStackResources(in io.Reader) ([]StackResource, error) {
	var all []StackResource
	for decoder := jsontext.NewDecoder(in); ; {
		var printed struct {
			StackResourceSummaries []StackResource `json:"StackResourceSummaries"`
		}
		switch err := json.UnmarshalDecode(decoder, &printed); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the resources of the stacks: %w", err)
		}
		all = append(all, printed.StackResourceSummaries...)
	}
}

// Kinds of resources that a graph may show.
const (
	functionType = "AWS::Lambda::Function"
	queueType    = "AWS::SQS::Queue"
	tableType    = "AWS::DynamoDB::Table"
)

// graph is a widget with some metrics of some resources.
type graph struct {
	title, statistic     string
	namespace, dimension string // "" is the service's own namespace
	metrics              []string
	kind                 string   // of the resources; "" is the API
	only                 []string // their logical ids; nil for all of the kind
}

func graphs() []graph {
	requests := []string{"DevelopersFunction", "WebhooksFunction", "ApiFunction", "ReceiptsFunction"}
	return []graph{
		{"Requests", "Sum", "AWS/ApiGateway", "ApiName", []string{"Count", "4XXError", "5XXError"}, "", nil},
		{"Latency p99 (ms)", "p99", "AWS/ApiGateway", "ApiName", []string{"Latency", "IntegrationLatency"}, "", nil},
		{"Stream age (ms)", "Maximum", "AWS/Lambda", "FunctionName", []string{"IteratorAge"}, functionType, []string{"DispatcherFunction", "IndexerFunction"}},
		{"Messages waiting", "Maximum", "AWS/SQS", "QueueName", []string{"ApproximateNumberOfMessagesVisible"}, queueType, nil},
		{"Messages in flight", "Maximum", "AWS/SQS", "QueueName", []string{"ApproximateNumberOfMessagesNotVisible"}, queueType, nil},
		{"Oldest message (s)", "Maximum", "AWS/SQS", "QueueName", []string{"ApproximateAgeOfOldestMessage"}, queueType, nil},
		{"Function errors", "Sum", "AWS/Lambda", "FunctionName", []string{"Errors"}, functionType, nil},
		{"Function duration p99 (ms)", "p99", "AWS/Lambda", "FunctionName", []string{"Duration"}, functionType, nil},
		{"Concurrent executions", "Maximum", "AWS/Lambda", "FunctionName", []string{"ConcurrentExecutions"}, functionType, nil},
		{"Throttled and dropped invocations", "Sum", "AWS/Lambda", "FunctionName", []string{"Throttles", "RecursiveInvocationsDropped"}, functionType, nil},
		{"Table", "Sum", "AWS/DynamoDB", "TableName", []string{"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"}, tableType, nil},
		{"Answers", "Sum", "", "FunctionName", []string{"Requests", "ClientErrors", "RateLimited", "ServerErrors"}, functionType, requests},
		{"Records", "Sum", "", "FunctionName", []string{"RecordsStored", "RecordsRefused"}, functionType, []string{"IngestFunction"}},
		{"Deliveries", "Sum", "", "FunctionName", []string{"Delivered", "Retried", "Failed", "Held"}, functionType, []string{"WorkerFunction"}},
		{"Age of messages p99 (ms)", "p99", "", "FunctionName", []string{"QueueAge"}, functionType, []string{"IngestFunction", "WorkerFunction", "SweeperFunction"}},
		{"Age of changes in lists p99 (ms)", "p99", "", "FunctionName", []string{"IndexAge"}, functionType, []string{"IndexerFunction"}},
	}
}

// widget is an element of a dashboard's body (CloudWatch, Dashboard Body Structure and Syntax).
type widget struct {
	Type       string     `json:"type"`
	X          int        `json:"x"`
	Y          int        `json:"y"`
	Width      int        `json:"width"`
	Height     int        `json:"height"`
	Properties properties `json:"properties"`
}

type properties struct {
	Title   string     `json:"title"`
	Region  string     `json:"region"`
	Stat    string     `json:"stat"`
	Period  int        `json:"period"`
	Metrics [][]string `json:"metrics"`
}

// Dashboard returns the body of a CloudWatch dashboard of the service's stack. The resources are those of both stacks.
// It fails when they lack what a graph shows.
func Dashboard(region, stack string, resources []StackResource) ([]byte, error) {
	const width, height, perRow, period = 8, 6, 3, 60
	var widgets []widget
	for i, g := range graphs() {
		metrics := g.of(stack, resources)
		if len(metrics) == 0 {
			return nil, fmt.Errorf("the resources have nothing for %q: pass those of the service's stack and of its state's", g.title)
		}
		widgets = append(widgets, widget{
			Type: "metric", X: i % perRow * width, Y: i / perRow * height, Width: width, Height: height,
			Properties: properties{Title: g.title, Region: region, Stat: g.statistic, Period: period, Metrics: metrics},
		})
	}
	return json.Marshal(map[string]any{"widgets": widgets}, jsontext.WithIndent(" "))
}

// of lists the graph's metrics: namespace, name, dimension and its value.
func (g *graph) of(stack string, resources []StackResource) [][]string {
	namespace, names := g.namespace, []string{stack}
	if namespace == "" {
		namespace = "Commerce/" + stack
	}
	if g.kind != "" {
		names = nil
		for _, r := range resources {
			if r.ResourceType == g.kind && (g.only == nil || slices.Contains(g.only, r.LogicalResourceID)) {
				names = append(names, path.Base(r.PhysicalResourceID)) // a queue's is its URL
			}
		}
	}
	var metrics [][]string
	for _, name := range names {
		for _, metric := range g.metrics {
			metrics = append(metrics, []string{namespace, metric, g.dimension, name})
		}
	}
	return metrics
}
