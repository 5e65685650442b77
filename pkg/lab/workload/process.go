package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// Build compiles the commerce command into a folder and returns its path. It
// needs Go and a checkout of the repository.
func Build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "commerce")
	said, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/commerce-integration/service/pkg/cmd/commerce").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the commerce command: %w\n%s", err, said)
	}
	return program, nil
}

// Process is commerce run in a process of its own. It can be killed and started
// again with the same data at the same address.
type Process struct {
	command  []string // the program and the arguments before a subcommand
	env      []string // beside this process's own
	dir      string
	addr     string
	log      io.Writer
	launcher *child.Launcher

	cmd   *exec.Cmd
	ended chan struct{} // closed once cmd has ended
}

// NewProcess prepares a service that keeps its data in a folder. Its log
// goes to log.
func NewProcess(ctx context.Context, command, env []string, binDir, dir string, log io.Writer) (*Process, error) {
	if _, err := tableserver.Install(ctx, binDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if err := os.Symlink(binDir, filepath.Join(dir, "bin")); err != nil {
		return nil, fmt.Errorf("point the data folder at the table server: %w", err)
	}
	addr, err := twoPorts(ctx)
	if err != nil {
		return nil, err
	}
	launcher, err := child.NewLauncher()
	if err != nil {
		return nil, err
	}
	return &Process{command: command, env: env, dir: dir, addr: addr, log: log, launcher: launcher}, nil
}

// twoPorts returns an address whose port and the one after it are free: the
// service takes the second for its queues.
func twoPorts(ctx context.Context) (string, error) {
	const tries = 50
	var config net.ListenConfig
	for range tries {
		l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
		next, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		if closeErr := l.Close(); closeErr != nil {
			return "", fmt.Errorf("find a free port: %w", closeErr)
		}
		if err == nil {
			return fmt.Sprintf("127.0.0.1:%d", port), next.Close()
		}
	}
	return "", errors.New("there are no two free ports in a row")
}

// Start runs the service with further arguments until it answers.
func (p *Process) Start(ctx context.Context, args ...string) (*Service, error) {
	if err := os.Remove(filepath.Join(p.dir, "run.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove what a killed run left: %w", err)
	}
	args = slices.Concat(p.command[1:], []string{"run", "--addr", p.addr, "--data", p.dir, "--no-demo"}, args)
	p.cmd, p.ended = exec.Command(p.command[0], args...), make(chan struct{}) //nolint:gosec // our own command
	p.cmd.Env = p.environ()
	p.cmd.Stderr = p.log
	p.cmd.WaitDelay = time.Second // a child that outlives it must not keep its output open
	child.Apart(p.cmd)            // in a process group, which can be killed whole
	if err := p.launcher.Start(p.cmd); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	go func(cmd *exec.Cmd, ended chan<- struct{}) {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}(p.cmd, p.ended)
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return connect(p.dir)
}

// environ leaves out what would have the service use other servers than its
// own.
func (p *Process) environ() []string {
	kept := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_ENDPOINT_URL_") })
	return append(kept, p.env...)
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
	if err := killGroup(p.PID()); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-p.ended
	return nil
}

// Stop interrupts the service and waits until it has ended what is under way.
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
	defer p.launcher.Close()
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
	args = slices.Concat(p.command[1:], args, []string{"--data", p.dir})
	cmd := exec.CommandContext(ctx, p.command[0], args...) //nolint:gosec // our own command
	cmd.Env = p.environ()
	said, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}
