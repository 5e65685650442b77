// Package workload runs the service as a process of its own, has organizations that send records to it, and receives
// their webhooks. Bench and chaos share it. It needs a Unix, Go and a checkout of the repository.
package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/local/child"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/local/tableserver"
)

// startTimeout includes the build of the functions.
const startTimeout = 2 * time.Minute

// Service is commerce run in a process of its own, with clients of its servers, the receiver of its webhooks and a proxy
// before its table. It can be killed and started again with the same data at the same addresses.
type Service struct {
	Root     string // of the checkout that it is built of
	Dir      string // of its data and its log
	Env      []string
	Faults   *faults.Proxy
	Receiver *Receiver
	Info     *runner.Info
	Table    *dynamodb.Client
	Queues   *sqs.Client

	addr    string // of the API; the queues have the next port
	program string
	data    string // folder
	log     *os.File
	issuer  *issuer.Issuer
	cmd     *exec.Cmd
	ended   <-chan struct{} // closed once cmd has ended
}

// Run builds a service without data and lets it be used. The folder of one that was used without an error is removed.
func Run(ctx context.Context, table faults.Config, answer Behaviour, use func(*Service) error) (err error) {
	// Connections take their ports from 32768 on, so that none takes one of the service while it is not up.
	const first, count = 20_000, 12_000
	s := &Service{addr: fmt.Sprintf("127.0.0.1:%d", first+rand.N(count))} //nolint:gosec // any will do
	if s.Dir, err = os.MkdirTemp("", "commerce-lab-"); err != nil {
		return fmt.Errorf("make a folder for the service: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(s.Dir)
		} else {
			err = fmt.Errorf("%w; data and log of the service are in %s", err, s.Dir)
		}
	}()
	s.data = filepath.Join(s.Dir, "data")
	if s.log, err = os.Create(filepath.Join(s.Dir, "service.log")); err != nil {
		return fmt.Errorf("write the service's log: %w", err)
	}
	defer s.log.Close()
	if err := s.build(ctx); err != nil {
		return err
	}
	server, err := s.startTable(ctx, table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Faults.Close(), server.Close()) }()
	if s.Receiver, err = newReceiver(ctx, answer); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Receiver.server.Close()) }()
	defer func() {
		if s.ended != nil {
			err = errors.Join(err, s.Kill())
		}
	}()
	return use(s)
}

// startTable starts the table server and the proxy before it, and lets the service use that.
func (s *Service) startTable(ctx context.Context, cfg faults.Config) (*tableserver.Server, error) {
	program, err := tableserver.InstallShared(ctx)
	if err != nil {
		return nil, err
	}
	server, err := tableserver.Start(ctx, program, filepath.Join(s.Dir, "table"))
	if err != nil {
		return nil, err
	}
	if s.Faults, err = faults.New(server.Endpoint(), cfg); err == nil {
		err = s.Faults.Start("127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	s.Env = append(s.Env, "AWS_ENDPOINT_URL_DYNAMODB="+s.Faults.Endpoint())
	return server, nil
}

// build compiles the commerce command, unless that is up to date.
func (s *Service) build(ctx context.Context) error {
	module, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the checkout of the repository: %w", err)
	}
	s.Root = filepath.Dir(strings.TrimSpace(string(module)))
	s.program = filepath.Join(s.Root, ".build", "lab-commerce")
	said, err := exec.CommandContext(ctx, "go", "build", "-C", s.Root, "-trimpath", "-o", s.program, "./pkg/cmd/commerce").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the commerce command: %w\n%s", err, said)
	}
	return nil
}

// Start runs the service with further arguments until it answers.
func (s *Service) Start(ctx context.Context, args ...string) (err error) {
	if err := os.Remove(filepath.Join(s.data, "run.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what a killed run left: %w", err)
	}
	args = append([]string{"run", "--addr", s.addr, "--data", s.data, "--no-demo", "--template", filepath.Join(s.Root, "template.yaml")}, args...)
	s.cmd = exec.Command(s.program, args...) //nolint:gosec // our own command
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), s.Env...), s.log
	s.cmd.WaitDelay = time.Second // a child that outlives it must not keep its output open
	child.Apart(s.cmd)            // in a process group, which can be killed whole
	if s.ended, err = child.Start(s.cmd); err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	info, err := s.await(ctx)
	switch {
	case err != nil:
		return err
	case s.Info == nil:
		s.Info = info
		return s.connect()
	case info.SQSEndpoint != s.Info.SQSEndpoint:
		return errors.New("another program has taken the queues' port: run it again")
	}
	return nil
}

func (s *Service) connect() (err error) {
	if s.issuer, err = runner.OpenIssuer(s.data); err != nil {
		return fmt.Errorf("sign tokens for the service: %w", err)
	}
	cfg := runner.AWSConfig()
	s.Table = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &s.Info.DynamoDBEndpoint })
	s.Queues = sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = &s.Info.SQSEndpoint })
	return nil
}

func (s *Service) await(ctx context.Context) (*runner.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if info, err := runner.ReadInfo(s.data); err == nil {
			return info, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("the service did not start: %v", s.cmd.ProcessState)
		default:
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return nil, fmt.Errorf("wait for the service to start: %w", err)
		}
	}
}

// PID is the id of the process, once it has been started.
func (s *Service) PID() int { return s.cmd.Process.Pid }

// Kill ends the service with all its processes at once, its servers included.
func (s *Service) Kill() error {
	if err := syscall.Kill(-s.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the service: %w", err)
	}
	<-s.ended
	return nil
}

// Command runs another command against the service and returns what it says.
func (s *Service) Command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program, append(args, "--data", s.data)...) //nolint:gosec // our own command
	cmd.Env = s.cmd.Env
	said, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}
