//go:build emulate

package emulator_test

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

const root = "../../.."

// function is a function's binary under an emulator of its own, which takes
// one invocation at a time.
type function struct {
	name, url string
	output    *output
	process   *os.Process
	ended     chan struct{}
}

// output is what emulator and function write.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// start starts a function with the environment that it has in Lambda, and
// with nothing else of this process's. It ends with the test.
func start(t testing.TB, name string, environment []string) *function {
	t.Helper()
	// A port that was free a moment ago may be taken by now.
	for range 3 {
		if f := tryStart(t, name, environment); f != nil {
			return f
		}
	}
	t.Fatalf("the emulator of %s does not start", name)
	return nil
}

func tryStart(t testing.TB, name string, environment []string) *function {
	t.Helper()
	invoke, runtimeAPI := freeAddresses(t)
	f := &function{
		name: name, url: "http://" + invoke + "/2015-03-31/functions/function/invocations",
		output: &output{}, ended: make(chan struct{}),
	}
	// The defaults of both addresses are open to the network.
	cmd := exec.Command(emulatorBinary(t), "--runtime-interface-emulator-address", invoke,
		"--runtime-api-address", runtimeAPI, functionBinary(t, name))
	cmd.Env, cmd.Dir = environment, t.TempDir()
	cmd.Stdout, cmd.Stderr = f.output, f.output
	// The function ends soon after a killed emulator: when its request for the next invocation is not answered.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.process = cmd.Process
	go func() {
		_ = cmd.Wait() // how it ended shows in its output
		close(f.ended)
	}()
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", name, f.output)
		}
	})
	if !f.awaitAnswering(t, invoke) {
		return nil
	}
	return f
}

// stop ends emulator and function.
func (f *function) stop() {
	_ = f.process.Signal(syscall.SIGTERM) // it may have ended
	<-f.ended
}

// freeAddresses returns two addresses on which no process listens.
func freeAddresses(t testing.TB) (one, other string) {
	t.Helper()
	var addresses [2]string
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	return addresses[0], addresses[1]
}

// awaitAnswering waits until the emulator listens, false when it ended.
func (f *function) awaitAnswering(t testing.TB, address string) bool {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return true
		}
		select {
		case <-f.ended:
			return false
		default:
		}
	}
	t.Fatalf("the emulator of %s does not listen on %s", f.name, address)
	return false
}

// functionError is a function error. The emulator answers it, and a timeout, with 200, as Lambda does.
type functionError struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

// invoke sends an event and returns the answer, which must not be an error.
func (f *function) invoke(t testing.TB, event []byte) []byte {
	t.Helper()
	answer, failure := f.call(t, event)
	if failure != "" {
		t.Fatalf("%s failed: %s", f.name, failure)
	}
	return answer
}

// call sends an event and returns the answer.
func (f *function) call(t testing.TB, event []byte) (answer []byte, failure string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(event))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("invoke %s: %v", f.name, err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var failed functionError
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, resp.Status + ": " + string(answer)
	case strings.HasPrefix(string(answer), "Task timed out"):
		return nil, string(answer)
	case json.Unmarshal(answer, &failed) == nil && failed.Type+failed.Message != "":
		return nil, string(answer)
	}
	return answer, ""
}

// emulatorBinary finds the emulator that the SAM CLI contains.
func emulatorBinary(t testing.TB) string {
	t.Helper()
	arch := map[string]string{"amd64": "x86_64", "arm64": "arm64"}[runtime.GOARCH]
	found, err := filepath.Glob(absolute(t, ".build/sam/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-"+arch))
	if err != nil || len(found) == 0 {
		t.Fatalf("the SAM CLI is not installed (%v): run make emulate", err)
	}
	return found[0]
}

// functionBinary finds the binary that make build has built for this machine.
func functionBinary(t testing.TB, name string) string {
	t.Helper()
	path := absolute(t, filepath.Join("dist", name, "bootstrap"))
	file, err := elf.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is not built: run make emulate", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]; file.Machine != want {
		t.Fatalf("%s is built for %s, this machine is %s: run make emulate", path, file.Machine, want)
	}
	return path
}

// absolute returns the path of a file of the repository.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
