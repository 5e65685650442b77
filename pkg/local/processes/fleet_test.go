//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestAnInvocationIsWhatLambdaMakesOfIt(t *testing.T) {
	t.Setenv("SECRET_OF_THE_CALLER", "1")
	f := newFleet(t, Function{
		Environment: map[string]string{"STAND_IN": "echo", "TABLE_NAME": "commerce", "AWS_LAMBDA_FUNCTION_NAME": "overridden"},
		Timeout:     7 * time.Second, MemoryMB: 512,
	}, Config{Region: "eu-central-1"})
	first, second := ask(t, f, order{Text: "é<&>"}), ask(t, f, order{})
	if first.Text != "é<&>" || first.Count != 1 || second.Count != 2 || first.PID != second.PID || first.PID == os.Getpid() {
		t.Errorf("got %+v, then %+v; want one process of its own that goes on", first, second)
	}
	if first.RequestID == "" || first.RequestID == second.RequestID {
		t.Errorf("request ids: got %q and %q, want two", first.RequestID, second.RequestID)
	}
	if want := "arn:aws:lambda:eu-central-1:000000000000:function:echo"; first.ARN != want {
		t.Errorf("ARN: got %q, want %q", first.ARN, want)
	}
	if first.Left < 6000 || first.Left > 7000 {
		t.Errorf("time left: got %d ms, want what the function's timeout of 7 s leaves", first.Left)
	}
	for _, want := range []string{
		"TABLE_NAME=commerce", "AWS_LAMBDA_FUNCTION_NAME=echo", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local", "AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/echo",
	} {
		if !slices.Contains(first.Environment, want) {
			t.Errorf("environment: got %q, want %s in it", first.Environment, want)
		}
	}
	for _, got := range first.Environment {
		if strings.HasPrefix(got, "SECRET_OF_THE_CALLER=") || strings.HasPrefix(got, "HOME=") {
			t.Errorf("environment: got the caller's %s", got)
		}
	}
}

func TestConcurrentInvocationsHaveTheirOwnInstances(t *testing.T) {
	f := newFleet(t, Function{Instances: 3}, Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	answers := make(chan told, 5)
	var calls sync.WaitGroup
	for i := range 5 {
		calls.Go(func() {
			got, err := try(t.Context(), f, order{Do: "await", Path: gate, Text: fmt.Sprint(i)})
			if err != nil || got.Text != fmt.Sprint(i) {
				t.Errorf("call %d: got %+v, %v", i, got, err)
			}
			answers <- got
		})
	}
	waitUntil(t, "three busy instances", func() bool { return len(busy(t, gate)) == 3 })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	close(answers)
	pids := map[int]bool{}
	for got := range answers {
		pids[got.PID] = true
	}
	if len(pids) != 3 {
		t.Errorf("five invocations ran in %d processes, want 3", len(pids))
	}
}

func TestAnInvocationPastItsDeadlineFailsAndItsProcessIsKilled(t *testing.T) {
	f := newFleet(t, Function{Timeout: 200 * time.Millisecond}, Config{})
	before := ask(t, f, order{})
	failed := failure(t, f, order{Do: "sleep"})
	if failed.Type != "Sandbox.Timedout" || !strings.HasSuffix(failed.Message, "Task timed out after 0.20 seconds") {
		t.Errorf("got %+v, want Lambda's timeout", failed)
	}
	if err := syscall.Kill(before.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after its timeout: got %v, want it gone", before.PID, err)
	}
	if after := ask(t, f, order{}); after.PID == before.PID || after.Count != 1 {
		t.Errorf("after a timeout: got %+v, want a fresh process", after)
	}
}

func TestProcessThatEndsIsStartedAgainAtTheNextInvocation(t *testing.T) {
	f := newFleet(t, Function{}, Config{})
	for name, end := range map[string]func(before told){
		"an exit": func(told) {
			if failed := failure(t, f, order{Do: "exit"}); failed.Type != "Runtime.ExitError" || !strings.Contains(failed.Message, "exit status 7") {
				t.Errorf("an exit: got %+v", failed)
			}
		},
		"a panic": func(told) {
			if failed := failure(t, f, order{Do: "panic", Text: "broken"}); failed.Type != "string" || failed.Message != "broken" {
				t.Errorf("a panic: got %+v", failed)
			}
		},
		"a kill while it is idle": func(before told) {
			if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		before := ask(t, f, order{})
		end(before)
		waitUntil(t, "the end of the process", func() bool { return f.instances() == 0 })
		if after := ask(t, f, order{}); after.PID == before.PID || after.Count != 1 {
			t.Errorf("after %s: got %+v, want a fresh process", name, after)
		}
	}
}

func TestAKilledProcessFailsItsInvocationOnly(t *testing.T) {
	f := newFleet(t, Function{Instances: 1}, Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	victim := ask(t, f, order{})
	ended := make(chan error, 1)
	go func() {
		_, err := try(t.Context(), f, order{Do: "await", Path: gate})
		ended <- err
	}()
	waitUntil(t, "the invocation", func() bool { return len(busy(t, gate)) == 1 })
	next := make(chan told, 1) // it waits for the only instance there may be
	go func() {
		got, err := try(t.Context(), f, order{Text: "next"})
		if err != nil {
			t.Error(err)
		}
		next <- got
	}()
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var failed *FunctionError
	if err := <-ended; !errors.As(err, &failed) || failed.Type != "Runtime.ExitError" || !strings.Contains(failed.Message, "signal: killed") {
		t.Errorf("the killed invocation: got %v, want that its process was killed", err)
	}
	if got := <-next; got.Text != "next" || got.PID == victim.PID {
		t.Errorf("the one that waited: got %+v, want it answered by a fresh process", got)
	}
}

func TestAnErrorOfTheFunctionIsPassedOnAndTheInstanceGoesOn(t *testing.T) {
	f := newFleet(t, Function{}, Config{})
	before := ask(t, f, order{})
	if failed := failure(t, f, order{Do: "fail", Text: "table unreachable"}); failed.Type != "errorString" || failed.Message != "table unreachable" {
		t.Errorf("got %+v, want the function's own error", failed)
	}
	if after := ask(t, f, order{}); after.PID != before.PID || after.Count != 3 {
		t.Errorf("after an error: got %+v, want the same process", after)
	}
}

func TestAnAnswerOrAnEventThatLambdaDoesNotTakeFails(t *testing.T) {
	f := newFleet(t, Function{}, Config{})
	if failed := failure(t, f, order{Do: "large", Size: MaxPayload}); failed.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("an answer of more than %d bytes: got %+v", MaxPayload, failed)
	}
	if _, err := f.Invoke(t.Context(), "echo", make([]byte, MaxPayload+1)); err == nil || !strings.Contains(err.Error(), "more than 6291556") {
		t.Errorf("an event of more than %d bytes: got %v", MaxPayload, err)
	}
	if _, err := f.Invoke(t.Context(), "nobody", nil); err == nil {
		t.Error("a function that does not exist: got no error")
	}
	if _, err := New([]Function{{Name: "none", Binary: filepath.Join(t.TempDir(), "none")}}, Config{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a binary that does not exist: got %v", err)
	}
}

func TestFailedInitializationFailsItsInvocation(t *testing.T) {
	for _, c := range []struct {
		standIn, kind, says string
	}{
		{"never ready", "Sandbox.Timedout", "initialization timed out after 0.30 seconds"},
		{"init exit", "Runtime.ExitError", "exit status 3"},
	} {
		f := newFleet(t, Function{Environment: map[string]string{"STAND_IN": c.standIn}}, Config{Init: 300 * time.Millisecond})
		if failed := failure(t, f, order{}); failed.Type != c.kind || !strings.Contains(failed.Message, c.says) {
			t.Errorf("%s: got %+v, want %s with %q", c.standIn, failed, c.kind, c.says)
		}
	}
}

func TestAnInstanceThatNobodyNeedsEnds(t *testing.T) {
	f := newFleet(t, Function{}, Config{Idle: 50 * time.Millisecond})
	before := ask(t, f, order{})
	waitUntil(t, "the end of the idle process", func() bool { return f.instances() == 0 })
	if after := ask(t, f, order{}); after.PID == before.PID {
		t.Errorf("after the idle process has ended: got process %d again", after.PID)
	}
}

func TestACallerThatGivesUpLeavesTheInvocationToItself(t *testing.T) {
	f := newFleet(t, Function{Instances: 1}, Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	before := ask(t, f, order{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := errors.New("gave up")
	running, waiting := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := try(ctx, f, order{Do: "await", Path: gate})
		running <- err
	}()
	waitUntil(t, "the invocation", func() bool { return len(busy(t, gate)) == 1 })
	go func() {
		_, err := try(ctx, f, order{Do: "exit"}) // it is to wait, and then to be forgotten
		waiting <- err
	}()
	cancel(gaveUp)
	for _, ended := range []chan error{running, waiting} {
		if err := <-ended; !errors.Is(err, gaveUp) {
			t.Errorf("got %v, want that the caller gave up", err)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after := ask(t, f, order{}); after.PID != before.PID || after.Count != 3 {
		t.Errorf("got %+v, want the third invocation of process %d", after, before.PID)
	}
}

func TestWhatFunctionsWriteIsPassedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	f := newFleet(t, Function{}, Config{Logs: out})
	ask(t, f, order{Do: "say", Text: "one\n"})
	ask(t, f, order{Do: "say", Text: "two\n"})
	if got, err := os.ReadFile(path); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestClosingKillsEveryProcessAndFailsWhatTheyDo(t *testing.T) {
	f := newFleet(t, Function{Instances: 2}, Config{})
	path := filepath.Join(t.TempDir(), "sleeps")
	running, waiting := make(chan error, 2), make(chan error, 1)
	for range 2 {
		go func() {
			_, err := try(context.Background(), f, order{Do: "sleep", Path: path})
			running <- err
		}()
	}
	waitUntil(t, "two busy processes", func() bool { return len(busy(t, path)) == 2 })
	go func() {
		_, err := try(context.Background(), f, order{})
		waiting <- err
	}()
	pids := busy(t, path)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{<-running, <-running, <-waiting} {
		if !errors.Is(err, errClosed) {
			t.Errorf("got %v, want %v", err, errClosed)
		}
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: got %v, want it gone", pid, err)
		}
	}
}
