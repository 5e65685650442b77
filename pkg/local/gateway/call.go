package gateway

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
)

// call calls a function within the gateway's own time limit, without JSON if it is of this process and body is surely
// within a payload's limit: the body of the event. A client that hangs up does not end the call: Lambda would run
// on, too.
func call[A any](x *exchange, function string, event any, body string) (answer A, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.r.Context()), x.cfg.Timeout)
	defer cancel()
	known := false
	if x.cfg.Direct != nil && len(body) < maxPayload/2 {
		var given any
		if given, known, err = x.cfg.Direct(ctx, function, event); known && err == nil {
			answer, _ = given.(A) // another type is an answer without anything, which is refused
		}
	}
	if !known && err == nil {
		answer, err = callByJSON[A](ctx, x, function, event)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return answer, fmt.Errorf("invoke %s: %w", function, err)
	}
	return answer, nil
}

// answerError is of an answer that the gateway does not take.
type answerError struct{ error }

func callByJSON[A any](ctx context.Context, x *exchange, function string, event any) (answer A, err error) {
	payload, err := json.Marshal(event, json.FormatNilMapAsNull(true))
	if err != nil {
		return answer, fmt.Errorf("encode event: %w", err)
	}
	if len(payload) > maxPayload {
		return answer, errTooLarge
	}
	raw, err := x.invoke(ctx, function, payload)
	if err != nil {
		return answer, err
	}
	if len(raw) > maxPayload {
		return answer, answerError{fmt.Errorf("the answer has %d bytes, more than %d", len(raw), maxPayload)}
	}
	if err := json.Unmarshal(raw, &answer, json.RejectUnknownMembers(true)); err != nil {
		return answer, answerError{fmt.Errorf("the answer has another form: %w", err)}
	}
	return answer, nil
}
