package runner

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/commerce-integration/service/pkg/api/docs/markdown"
	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/local/gateway"
	"github.com/commerce-integration/service/pkg/local/template"
)

// A host runs the functions, in this process or in their own. The rest is for the event sources.
type host struct {
	invoke gateway.Invoker
	direct gateway.Direct // nil for functions that take JSON only
	here   *functions     // nil for those elsewhere
	close  func() error

	concurrency func(queue string, template int) int // of a queue's invocations
	lanes       func(factor int) int                 // in which the stream is read, for a mapping's ParallelizationFactor
	startTime   time.Duration                        // what an invocation may take beyond the function's timeout
}

// startFunctions makes the functions ready to run.
func (r *run) startFunctions(ctx context.Context) (*host, error) {
	if r.cfg.Processes {
		fleet, err := r.startProcesses(ctx)
		if err != nil {
			return nil, err
		}
		return &host{
			invoke: fleet.Invoke, close: fleet.Close,
			concurrency: processConcurrency, lanes: processLanes, startTime: processStart,
		}, nil
	}
	base, err := r.base()
	if err != nil {
		return nil, err
	}
	functions, err := makeFunctions(ctx, r.model, base)
	if err != nil {
		return nil, err
	}
	return &host{
		invoke: functions.invoke, direct: functions.call, here: functions, close: func() error { return nil },
		concurrency: concurrency, lanes: lanes,
	}, nil
}

// functions are the service's functions in this process, called through Lambda's invoke JSON as the deployed ones are.
type functions struct {
	model    *template.Model
	handlers map[string]any // in the forms that Lambda takes, safe for concurrent use
}

func makeFunctions(ctx context.Context, model *template.Model, base *app.Dependencies) (*functions, error) {
	f := &functions{model: model, handlers: map[string]any{}}
	makers := app.Functions(markdown.HTML, tools.Operation)
	for name := range model.Functions {
		maker := makers[name]
		if maker == nil {
			return nil, fmt.Errorf("the template declares the function %s, which does not exist", name)
		}
		handler, err := maker(ctx, base)
		if err != nil {
			return nil, fmt.Errorf("make the function %s: %w", name, err)
		}
		f.handlers[name] = handler
	}
	return f, nil
}

// invoke calls a function with a fresh request id. A panic is a function error, as in Lambda. Every call gets a
// [lambda.Handler] of its own, because one has a single buffer for its answers: in Lambda no two calls of a process run
// at the same time.
func (f *functions) invoke(ctx context.Context, name string, payload []byte) (answer []byte, err error) {
	err = f.run(ctx, name, func(ctx context.Context) (err error) {
		answer, err = lambda.NewHandler(f.handlers[name]).Invoke(ctx, payload)
		return err
	})
	return answer, err
}

// call is invoke without JSON, for the two forms of functions that the gateway calls. ok is false for others.
func (f *functions) call(ctx context.Context, name string, event any) (answer any, ok bool, err error) {
	switch event := event.(type) {
	case events.APIGatewayProxyRequest:
		return callTyped(ctx, typed[events.APIGatewayProxyRequest, events.APIGatewayProxyResponse](f, name), event)
	case events.APIGatewayCustomAuthorizerRequestTypeRequest:
		return callTyped(ctx, typed[events.APIGatewayCustomAuthorizerRequestTypeRequest, events.APIGatewayCustomAuthorizerResponse](f, name), event)
	}
	return nil, false, nil
}

func callTyped[E, A any](ctx context.Context, function func(context.Context, E) (A, error), event E) (answer any, ok bool, err error) {
	if function == nil {
		return nil, false, nil
	}
	answer, err = function(ctx, event)
	return answer, true, err
}

// typed is invoke without JSON for a function that takes the event in its type; nil for others.
func typed[E, A any](f *functions, name string) func(context.Context, E) (A, error) {
	handler, ok := f.handlers[name].(func(context.Context, E) (A, error))
	if !ok {
		return nil
	}
	return func(ctx context.Context, event E) (answer A, err error) {
		err = f.run(ctx, name, func(ctx context.Context) (err error) {
			answer, err = handler(ctx, event)
			return err
		})
		return answer, err
	}
}

// run gives one call what an invocation has: a request id, a time limit, and a panic as an error.
func (f *functions) run(ctx context.Context, name string, call func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("function %s panicked: %v\n%s", name, p, debug.Stack())
		}
	}()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.model.Functions[name].Timeout)
		defer cancel()
	}
	ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: value.NewRandomID().String()})
	return call(ctx)
}
