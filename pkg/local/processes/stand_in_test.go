package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/go-json-experiment/json"
)

// order is an event of the stand-in: what it is to do.
type order struct {
	Do   string `json:"do"`
	Path string `json:"path,omitempty"`
	Text string `json:"text,omitempty"`
	Size int    `json:"size,omitempty"`
}

// told is what the stand-in answers.
type told struct {
	PID         int      `json:"pid"`
	Count       int      `json:"count"` // of this process's invocations
	RequestID   string   `json:"requestId"`
	ARN         string   `json:"arn"`
	Left        int64    `json:"left"` // ms to the deadline
	Trace       string   `json:"trace"`
	Environment []string `json:"environment"`
	Text        string   `json:"text"`
}

// TestMain lets the test binary stand in for a function.
func TestMain(m *testing.M) {
	switch os.Getenv("STAND_IN") {
	case "":
		os.Exit(m.Run())
	case "echo":
		count := 0
		lambda.Start(func(ctx context.Context, o order) (any, error) {
			count++
			return obey(ctx, o, count)
		})
	case "never ready":
		time.Sleep(time.Hour)
	case "init error":
		resp, err := http.Post("http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/init/error", "application/json",
			strings.NewReader(`{"errorType":"Init.Broken","errorMessage":"no table"}`))
		fmt.Println(resp.StatusCode, err)
		os.Exit(1)
	case "init exit":
		os.Exit(3)
	case "parent":
		fmt.Println(parent())
		time.Sleep(time.Hour)
	}
}

// parent starts a process of the function and tells its id.
func parent() (said string) {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	fleet, err := New([]Function{{Name: "echo", Binary: self, Environment: map[string]string{"STAND_IN": "echo"}}}, Config{})
	if err != nil {
		return err.Error()
	}
	got, err := try(context.Background(), fleet, order{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("child ", got.PID)
}

func obey(ctx context.Context, o order, count int) (any, error) {
	switch o.Do {
	case "sleep":
		time.Sleep(time.Hour)
	case "await": // a file
		for {
			if _, err := os.Stat(o.Path); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	case "exit":
		os.Exit(7)
	case "panic":
		panic(o.Text)
	case "fail":
		return nil, errors.New(o.Text)
	case "say":
		fmt.Print(o.Text)
	case "large":
		return strings.Repeat("a", o.Size), nil
	}
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	return told{
		PID: os.Getpid(), Count: count, RequestID: lc.AwsRequestID, ARN: lc.InvokedFunctionArn, Left: time.Until(deadline).Milliseconds(),
		Trace: os.Getenv("_X_AMZN_TRACE_ID"), Environment: os.Environ(), Text: o.Text,
	}, nil
}

// written is an output that may be read while it is written.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// newFleet makes a fleet of one function, "echo", that ends with the test.
func newFleet(t *testing.T, f Function, cfg Config) *Fleet {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if f.Environment == nil {
		f.Environment = map[string]string{"STAND_IN": "echo"}
	}
	f.Name, f.Binary = "echo", self
	if f.Timeout == 0 {
		f.Timeout = 20 * time.Second
	}
	fleet, err := New([]Function{f}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	return fleet
}

// try gives the function an order.
func try(ctx context.Context, f *Fleet, o order) (told, error) {
	event, err := json.Marshal(o)
	if err != nil {
		return told{}, err
	}
	answer, err := f.Invoke(ctx, "echo", event)
	if err != nil {
		return told{}, err
	}
	var got told
	return got, json.Unmarshal(answer, &got)
}

// ask is try for what must succeed.
func ask(t *testing.T, f *Fleet, o order) told {
	t.Helper()
	got, err := try(t.Context(), f, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return got
}

// failure is try for what must fail as a function does.
func failure(t *testing.T, f *Fleet, o order) *FunctionError {
	t.Helper()
	got, err := try(t.Context(), f, o)
	var failed *FunctionError
	if !errors.As(err, &failed) {
		t.Fatalf("%+v: got %+v, %v; want a function error", o, got, err)
	}
	return failed
}

// waitUntil polls for at most 20 s.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// process is an instance that runs.
type process struct {
	PID  int
	Busy bool // it has an invocation
}

// processes lists the function's instances that run.
func (f *Fleet) processes() []process {
	p := f.pools["echo"]
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []process
	for n := range p.alive {
		if n.process != nil {
			all = append(all, process{PID: n.process.Pid, Busy: n.current != nil})
		}
	}
	return all
}

// waiting is how many invocations wait for an instance.
func (f *Fleet) waiting() int {
	p := f.pools["echo"]
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}
