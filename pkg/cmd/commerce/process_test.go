//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/local/runner"
)

// process is a command in a process of its own, with everything that it
// starts in one process group.
type process struct {
	cmd    *exec.Cmd
	output lockedBuffer
	ended  chan struct{}
	gone   bool // nothing of the group is left to be killed
}

// launch starts a command line, which is killed at the end of the test.
func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self, args...), ended: make(chan struct{})}
	p.cmd.Args[0] = "commerce"
	p.cmd.Env = append(append(os.Environ(), actAsCommand+"=1"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, io.MultiWriter(&p.output, watched)
	// A child that outlives the command must not keep Wait.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the state tells
		close(p.ended)
	}()
	t.Cleanup(func() { p.kill(t) })
	return p
}

// signal reaches the command alone, as from kill.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// interrupt reaches the whole group, as Ctrl-C on a terminal does.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code, -1 after a signal. It
// fails when the command goes on, or leaves a process behind.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("%s did not end within %s\n%s", p.cmd.Args[1:], patience, &p.output)
	}
	// A child that the kernel kills with its parent takes a moment to go.
	await(t, "the end of what the command started", func() bool {
		return errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
	})
	p.gone = true
	return p.cmd.ProcessState.ExitCode()
}

// kill ends everything at once.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if p.gone {
		return
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	<-p.ended
	p.gone = true
}

// ownService is a service in processes of its own.
type ownService struct {
	service
	*process
	addr string
	env  []string
}

// newService returns a service that has yet to be started, with an address
// and a data folder of its own.
func newOwnService(t *testing.T) *ownService {
	t.Helper()
	s := &ownService{addr: freeAddr(t)}
	s.data = filepath.Join(t.TempDir(), "data")
	if err := shareBinary(t.Context(), s.data); err != nil {
		t.Fatal(err)
	}
	return s
}

// freeAddr is an address with a free port and a free one after it, which the
// service takes for its queues.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 50 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		l.Close()
		if err == nil {
			next.Close()
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no two free ports in a row")
	return ""
}

// args is the command line of the service.
func (s *ownService) args(flags ...string) []string {
	return append([]string{"run", "--addr", s.addr, "--data", s.data, "--template", "../../../template.yaml", "--log-level", "error"}, flags...)
}

// start runs the service until it answers.
func (s *ownService) start(t *testing.T, flags ...string) {
	t.Helper()
	if err := os.Remove(filepath.Join(s.data, "run.json")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err) // the file of a run that was killed
	}
	s.process = launch(t, s.env, s.args(append([]string{"--no-demo"}, flags...)...)...)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if s.Info, err = runner.ReadInfo(s.data); err == nil {
			if err := watchKeys(s.data); err != nil {
				t.Fatal(err)
			}
			return
		}
		select {
		case <-s.ended:
			t.Fatalf("the service did not start\n%s", &s.output)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service did not start in time\n%s", &s.output)
		}
	}
}

// stop ends the service as Ctrl-C does.
func (s *ownService) stop(t *testing.T) {
	t.Helper()
	s.interrupt(t)
	if code := s.exit(t); code != 0 {
		t.Fatalf("exit code %d after an interrupt, want 0\n%s", code, &s.output)
	}
}

// refused runs a command that is to fail and returns what it says.
func refused(t *testing.T, env []string, args ...string) string {
	t.Helper()
	p := launch(t, env, args...)
	if code := p.exit(t); code != 1 {
		t.Errorf("commerce %s: exit code %d, want 1", strings.Join(args, " "), code)
	}
	return p.output.String()
}
