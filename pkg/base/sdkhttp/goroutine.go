package sdkhttp

import (
	"context"

	"github.com/aws/smithy-go/middleware"
)

// GrowGoroutine is an API option of the SDK: it lets the stack of a call's
// goroutine grow to what the SDK's nested middleware needs, at once. In a new
// goroutine it would grow there by doubling, four times, each time copying what
// is nested so far.
func GrowGoroutine(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("GrowGoroutine",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			grow()
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}

// callFrames is more than half of the stack that a call needs, in bytes: a stack
// has the size of a power of two.
const callFrames = 20 << 10

// grow has a frame of that size.
//
//go:noinline
func grow() byte {
	var frame [callFrames]byte
	return *first(&frame)
}

//go:noinline
func first(frame *[callFrames]byte) *byte { return &frame[0] }
