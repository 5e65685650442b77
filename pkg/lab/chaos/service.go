package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commerce-integration/service/pkg/local/child"
	"github.com/commerce-integration/service/pkg/local/faults"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
	"github.com/commerce-integration/service/pkg/pause"
)

const (
	startPatience = 2 * time.Minute // the build of the functions included
	stopPatience  = 20 * time.Second
)

// service is commerce run in a process of its own, which can be killed and
// started again with the same data.
type service struct {
	cfg       *Config
	dir, addr string
	processes bool
	level     string // of the log
	notes     *notes

	launcher *child.Launcher

	info  *runner.Info
	cmd   *exec.Cmd
	ended chan struct{} // closed once cmd has ended
}

// newService prepares a service with its data in the folder.
func newService(ctx context.Context, cfg *Config, dir string, n *notes) (*service, error) {
	if _, err := tableserver.Install(ctx, cfg.BinDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if err := os.Symlink(cfg.BinDir, filepath.Join(dir, "bin")); err != nil {
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
	return &service{cfg: cfg, dir: dir, addr: addr, level: "info", notes: n, launcher: launcher}, nil
}

// twoPorts returns an address with a free port and a free one after it, which
// the service takes for its queues.
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

// start runs the service until it answers; share of its functions' requests to
// the table fail from then on.
func (s *service) start(ctx context.Context, share float64) error {
	if err := os.Remove(filepath.Join(s.dir, "run.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what a killed run left: %w", err)
	}
	args := slices.Concat(s.cfg.Command[1:], []string{
		"run", "--addr", s.addr, "--data", s.dir, "--template", s.cfg.Template, "--no-demo", "--log-level", s.level,
	})
	if s.processes {
		args = append(args, "--processes")
	}
	if share > 0 {
		args = append(args, "--faults", faultsOf(share), "--seed", strconv.FormatUint(s.cfg.Seed+1, 10))
	}
	s.cmd, s.ended = exec.Command(s.cfg.Command[0], args...), make(chan struct{}) //nolint:gosec // it is this command itself
	s.cmd.Env = append(withoutServers(os.Environ()), s.cfg.Env...)
	output := s.notes.output()
	s.cmd.Stdout, s.cmd.Stderr = output, output
	s.cmd.WaitDelay = time.Second // a child that outlives it must not keep its end
	child.Apart(s.cmd)            // in a process group, which can be killed whole
	if err := s.launcher.Start(s.cmd); err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	go func(cmd *exec.Cmd, ended chan<- struct{}) {
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}(s.cmd, s.ended)
	return s.await(ctx)
}

// withoutServers leaves out what would have the service use other servers than
// its own.
func withoutServers(environ []string) []string {
	var kept []string
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "AWS_ENDPOINT_URL_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (s *service) await(ctx context.Context) error {
	for deadline := time.Now().Add(startPatience); ; {
		info, err := runner.ReadInfo(s.dir)
		if err == nil {
			s.info = info
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the service did not start: %v\n%s", s.cmd.ProcessState, s.notes.last())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the service did not start within %s\n%s", startPatience, s.notes.last())
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// faultsOf are the rates at which a share of all requests to the table fails in
// one way or another. The same share is delayed, and as many batches are done
// by halves.
func faultsOf(share float64) string {
	parts := map[faults.Fault]float64{
		faults.Throttle: 0.35, faults.InternalError: 0.1, faults.LostRequest: 0.1, faults.Timeout: 0.02,
		faults.Conflict: 0.2, faults.FalseError: 0.1, faults.LostAnswer: 0.13,
		faults.Delay: 1, faults.Unprocessed: 1,
	}
	var text []string
	for _, kind := range faults.All() {
		text = append(text, fmt.Sprintf("%s=%.3f", kind, 100*share*parts[kind]))
	}
	return strings.Join(text, ",")
}

// kill ends the service with all its processes at once, its servers included.
func (s *service) kill() error {
	if err := killGroup(s.cmd.Process.Pid); err != nil {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-s.ended
	return nil
}

// stop ends the service as somebody does who waits for what is under way.
func (s *service) stop() error {
	if err := interrupt(s.cmd.Process.Pid); err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	select {
	case <-s.ended:
	case <-time.After(stopPatience):
		return errors.Join(fmt.Errorf("the service did not stop within %s", stopPatience), s.kill())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the service stopped with exit code %d\n%s", code, s.notes.last())
	}
	return nil
}

// close ends the service at the end of a run, whatever state it is in.
func (s *service) close() error {
	defer s.launcher.Close()
	if s.cmd == nil || s.cmd.Process == nil {
		return nil
	}
	select {
	case <-s.ended:
		return nil
	default:
		return s.kill()
	}
}

// command runs another command against the service and returns what it says.
func (s *service) command(ctx context.Context, args ...string) (string, error) {
	args = slices.Concat(s.cfg.Command[1:], args, []string{"--data", s.dir})
	cmd := exec.CommandContext(ctx, s.cfg.Command[0], args...) //nolint:gosec // it is this command itself
	cmd.Env = append(withoutServers(os.Environ()), s.cfg.Env...)
	said, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}
