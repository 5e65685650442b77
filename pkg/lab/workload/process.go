// Package workload runs the service, as a process or within this one, has organizations that send records to it, and
// receives their webhooks. The bench and the chaos run share it.
package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/local/child"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

const (
	startTimeout = 2 * time.Minute // the build of the functions included
	stopTimeout  = 30 * time.Second
)

// Build compiles the commerce command into a folder and returns its path. It needs Go and a checkout of the repository.
func Build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "commerce")
	said, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "github.com/commerce-integration/service/pkg/cmd/commerce").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the commerce command: %w\n%s", err, said)
	}
	return program, nil
}

// Process is commerce run in a process of its own. It can be killed and started again with the same data at the same
// address. It needs a Unix.
type Process struct {
	program string
	dir     string
	addr    string
	env     []string // added to this process's own
	log     io.Writer

	cmd   *exec.Cmd
	ended <-chan struct{} // closed once cmd has ended
}

// NewProcess prepares a service that keeps its data in a folder and writes its log to log.
func NewProcess(ctx context.Context, program, binDir, dir string, log io.Writer, env ...string) (*Process, error) {
	if _, err := tableserver.Install(ctx, binDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if err := os.Symlink(binDir, filepath.Join(dir, "bin")); err != nil {
		return nil, fmt.Errorf("point the data folder at the table server: %w", err)
	}
	return &Process{program: program, env: env, dir: dir, addr: "127.0.0.1:0", log: log}, nil
}

// Start runs the service with further arguments until it answers.
func (p *Process) Start(ctx context.Context, args ...string) (*Service, error) {
	if err := os.Remove(filepath.Join(p.dir, "run.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove what a killed run left: %w", err)
	}
	args = append([]string{"run", "--addr", p.addr, "--data", p.dir, "--no-demo"}, args...)
	p.cmd = exec.Command(p.program, args...) //nolint:gosec // our own command
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), p.env...), p.log
	p.cmd.WaitDelay = time.Second // a child that outlives it must not keep its output open
	child.Apart(p.cmd)            // in a process group, which can be killed whole
	var err error
	if p.ended, err = child.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	s, err := connect(p.dir)
	if err == nil {
		p.addr = strings.TrimPrefix(s.Info.BaseURL, "http://") // also of the next start
	}
	return s, err
}

func (p *Process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if _, err := runner.ReadInfo(p.dir); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("the service did not start: %v", p.cmd.ProcessState)
		default:
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the service to start: %w", err)
		}
	}
}

// PID is the id of the process, once it has been started.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the service with all its processes at once, its servers included.
func (p *Process) Kill() error {
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-p.ended
	return nil
}

// Stop interrupts the service and waits until it has ended its work.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("the service did not stop within %s", stopTimeout), p.Kill())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the service stopped with exit code %d", code)
	}
	return nil
}

// Close ends the service at the end of a run, whatever state it is in.
func (p *Process) Close() error {
	if p.cmd == nil || p.cmd.Process == nil {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	default:
		return p.Kill()
	}
}

// Command runs another command against the service and returns what it says.
func (p *Process) Command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, p.program, append(args, "--data", p.dir)...) //nolint:gosec // our own command
	cmd.Env = p.cmd.Env
	said, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}
