package processes

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// FunctionError is what Lambda answers for an invocation that failed: what the function reported, or what became of its
// process.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *FunctionError) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + ": " + e.Message
}

// invocation is one invocation on its way.
type invocation struct {
	id    string
	event []byte
	done  chan outcome // takes the only one, whether or not somebody still waits

	deadline time.Time // once an instance has it
}

type outcome struct {
	answer []byte
	err    error
}

func newInvocation(event []byte) *invocation {
	return &invocation{id: uuid.NewString(), event: event, done: make(chan outcome, 1)}
}

// timedOut is how Lambda fails an invocation past its deadline.
func (i *invocation) timedOut(limit time.Duration) *FunctionError {
	return &FunctionError{
		Type: "Sandbox.Timedout", Message: fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", i.id, limit.Seconds()),
	}
}

// exited is how Lambda fails an invocation whose process ended.
func (i *invocation) exited(how error) *FunctionError {
	return &FunctionError{Type: "Runtime.ExitError", Message: fmt.Sprintf("RequestId: %s Error: Runtime exited: %v", i.id, how)}
}
