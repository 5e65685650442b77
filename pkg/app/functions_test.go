package app_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/commerce-integration/service/pkg/api/docs/markdown"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// Lambda documents an empty list for a batch without failures, not null.
func TestABatchWithoutFailuresIsAnsweredByAnEmptyList(t *testing.T) {
	deps := dependenciesOf(servicetest.New(t))
	nothing, err := json.Marshal(queue.IndexJob{OrganizationID: value.NewID(), List: "products"})
	if err != nil {
		t.Fatal(err)
	}
	for function, f := range dynamotest.Model(t).Functions {
		var event any
		want := `{"batchItemFailures":[]}`
		switch {
		case function == "sweeper": // without a message it is the schedule's run, which has no answer
			event = events.SQSEvent{Records: []events.SQSMessage{{MessageId: "1", Body: string(nothing)}}}
		case len(f.Queues) > 0:
			event = events.SQSEvent{Records: []events.SQSMessage{}}
		case len(f.Streams) > 0:
			// The last event of a tumbling window has no records, and needs a state.
			event, want = events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{}}, `{"state":{},"batchItemFailures":[]}`
		default:
			continue
		}
		t.Run(function, func(t *testing.T) {
			handler, err := app.Functions(markdown.HTML, tools.Operation)[function](t.Context(), deps)
			if err != nil {
				t.Fatal(err)
			}
			payload, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := lambda.NewHandler(handler).Invoke(t.Context(), payload)
			if got := string(answer); got != want || err != nil {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		})
	}
}
