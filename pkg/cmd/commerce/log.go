package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// newLogger returns a logger for the local service. It writes text and adds the
// invocation's request ID, as the logger of a function in Lambda does.
func newLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(invocations{slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})})
}

type invocations struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h invocations) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		r.AddAttrs(slog.String("requestId", lc.AwsRequestID))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h invocations) WithAttrs(attrs []slog.Attr) slog.Handler {
	return invocations{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h invocations) WithGroup(name string) slog.Handler {
	return invocations{h.Handler.WithGroup(name)}
}
