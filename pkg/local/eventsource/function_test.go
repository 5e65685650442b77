package eventsource

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
)

func TestACallHasTheFunctionsTimeoutAndItsOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Function{Timeout: 3 * time.Second, Invoke: func(ctx context.Context, _ []byte) ([]byte, error) {
			deadline, ok := ctx.Deadline()
			if left := time.Until(deadline); !ok || left != 3*time.Second {
				t.Errorf("deadline in %v (%v), want in 3s", left, ok)
			}
			return []byte("answer"), nil
		}}
		if got, err := f.call(t.Context(), Host{}.withDefaults(), nil); err != nil || string(got) != "answer" {
			t.Errorf("call = %q, %v", got, err)
		}
		cause := errors.New("out of memory")
		f.Invoke = func(context.Context, []byte) ([]byte, error) { return []byte("{}"), cause }
		if got, err := f.call(t.Context(), Host{}.withDefaults(), nil); !errors.Is(err, cause) || got != nil {
			t.Errorf("call = %q, %v; want %v", got, err, cause)
		}
	})
}

func TestAFunctionThatIgnoresItsDeadlineIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, leave := time.Now(), make(chan struct{})
		defer synctest.Wait()
		defer close(leave)
		f := Function{Name: "worker", Timeout: 15 * time.Second, Invoke: func(context.Context, []byte) ([]byte, error) {
			<-leave
			return nil, nil
		}}
		_, err := f.call(t.Context(), Host{}.withDefaults(), nil)
		if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), "invoking worker: task timed out after 15.00 seconds") || took != 15*time.Second+unwind {
			t.Errorf("call: %v after %v, want a timeout after 15s", err, took)
		}
	})
}

func TestAnInvocationOutlivesTheEndByTheGraceOnly(t *testing.T) {
	for _, test := range []struct {
		takes time.Duration
		want  string
	}{{4 * time.Second, ""}, {time.Minute, "the runner ended"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			f := Function{Name: "worker", Timeout: 5 * time.Minute, Invoke: func(ctx context.Context, _ []byte) ([]byte, error) {
				cancel()
				return nil, pause.For(ctx, test.takes)
			}}
			_, err := f.call(ctx, Host{Grace: 5 * time.Second}.withDefaults(), nil)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("an invocation of %v within a grace of 5s: %v", test.takes, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("an invocation of %v beyond a grace of 5s: got %v, want %q", test.takes, err, test.want)
			}
		})
	}
}

func TestAGoroutineServesTheNextInvocationUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		host := Host{}.withDefaults()
		var names []string
		for range 2 {
			host.start(ctx, func() {
				stack := make([]byte, 64)
				name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), "[")
				names = append(names, name)
			})
			synctest.Wait()
		}
		if len(names) != 2 || names[0] != names[1] {
			t.Errorf("two calls one after the other ran in %q, want the same goroutine", names)
		}
		end() // the bubble fails if the goroutine stays
	})
}
