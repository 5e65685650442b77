package runner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/commerce-integration/service/pkg/local/template"
)

type echo struct {
	Text string `json:"text"`
}

func functionsOf(handler any) *functions {
	return &functions{
		model:    &template.Model{Functions: map[string]template.Function{"echo": {Timeout: 50 * time.Millisecond}}},
		handlers: map[string]any{"echo": handler},
	}
}

// Lambda's own handlers answer concurrent calls with one another's answers.
func TestConcurrentInvocationsGetTheirOwnAnswers(t *testing.T) {
	f := functionsOf(func(_ context.Context, in echo) (echo, error) { return in, nil })
	var calls sync.WaitGroup
	for caller := range 8 {
		calls.Go(func() {
			for i := range 200 {
				want := fmt.Sprintf(`{"text":"%s"}`, strings.Repeat(fmt.Sprint(caller), 1+i%50))
				if got, err := f.invoke(t.Context(), "echo", []byte(want)); err != nil || string(got) != want {
					t.Errorf("call %d of caller %d: got %s, %v; want %s", i, caller, got, err, want)
					return
				}
			}
		})
	}
	calls.Wait()
}

func TestAnInvocationHasItsOwnRequestIDAndTheFunctionsTimeout(t *testing.T) {
	ids := map[string]bool{}
	f := functionsOf(func(ctx context.Context) error {
		lc, ok := lambdacontext.FromContext(ctx)
		if !ok || lc.AwsRequestID == "" || ids[lc.AwsRequestID] {
			t.Errorf("request id: got %+v after %v", lc, ids)
		}
		ids[lc.AwsRequestID] = true
		<-ctx.Done()
		return ctx.Err()
	})
	for range 2 {
		if _, err := f.invoke(t.Context(), "echo", []byte("{}")); err == nil {
			t.Error("an invocation went on after its function's timeout")
		}
	}
}

func TestAPanicIsAFunctionError(t *testing.T) {
	f := functionsOf(func(context.Context) error { panic("broken") })
	if _, err := f.invoke(t.Context(), "echo", []byte("{}")); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v, want an error that says what was broken", err)
	}
}

func TestAFunctionIsCalledWithTheTypeItTakesOrNotAtAll(t *testing.T) {
	calls := 0
	f := functionsOf(func(ctx context.Context, r events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		calls++
		if lc, ok := lambdacontext.FromContext(ctx); !ok || lc.AwsRequestID == "" {
			t.Errorf("request id: got %+v", lc)
		}
		if r.Path == "/panic" {
			panic("broken")
		}
		return events.APIGatewayProxyResponse{Body: r.Path}, nil
	})
	answer, ok, err := f.call(t.Context(), "echo", events.APIGatewayProxyRequest{Path: "/a"})
	if got, typed := answer.(events.APIGatewayProxyResponse); !ok || !typed || err != nil || got.Body != "/a" {
		t.Errorf("got %+v, %t, %v; want the function's answer", answer, ok, err)
	}
	if _, ok, err := f.call(t.Context(), "echo", events.APIGatewayProxyRequest{Path: "/panic"}); !ok || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a panic: got %t, %v; want an error that says what was broken", ok, err)
	}
	if _, ok, err := f.call(t.Context(), "echo", events.APIGatewayCustomAuthorizerRequestTypeRequest{}); ok || err != nil || calls != 2 {
		t.Errorf("another type: got %t, %v after %d calls; want no call", ok, err, calls)
	}
	if typed[events.SQSEvent, events.SQSEventResponse](f, "echo") != nil {
		t.Error("a function of requests takes a queue's messages")
	}
}
