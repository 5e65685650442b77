package processes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/go-json-experiment/json"
)

// order is an event of the stand-in: what it is to do.
type order struct {
	Do   string `json:"do"`
	Path string `json:"path,omitempty"` // the process makes a file of this name with its id added
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
		<-time.After(time.Hour)
	case "init exit":
		os.Exit(3)
	}
}

func obey(ctx context.Context, o order, count int) (any, error) {
	if o.Path != "" {
		if err := os.WriteFile(fmt.Sprint(o.Path, ".", os.Getpid()), nil, 0o600); err != nil {
			return nil, err
		}
	}
	switch o.Do {
	case "sleep":
		<-time.After(time.Hour)
	case "await": // a file
		for {
			if _, err := os.Stat(o.Path); err == nil {
				break
			}
			<-time.After(time.Millisecond)
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
		Environment: os.Environ(), Text: o.Text,
	}, nil
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
	f.Timeout, f.Instances = cmp.Or(f.Timeout, 20*time.Second), cmp.Or(f.Instances, DefaultInstances)
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

// waitUntil polls for at most a minute.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// instances is how many of the function run.
func (f *Fleet) instances() int { return len(f.pools["echo"].slots) }

// busy lists the processes that obey an order with this path.
func busy(t *testing.T, path string) (pids []int) {
	t.Helper()
	found, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), "."))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
