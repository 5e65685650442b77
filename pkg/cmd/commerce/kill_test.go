//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/listener"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/value"
)

// process is the whole service in processes of its own, to be killed.
type process struct {
	service
	binary, addr string
	cmd          *exec.Cmd
	output       bytes.Buffer
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{binary: filepath.Join(t.TempDir(), "commerce"), addr: freeAddr(t)}
	p.data = t.TempDir()
	shareBinary(t, p.data)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() { p.kill(t) })
	return p
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

// start runs the service until it answers.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.binary, "run", "--addr", p.addr, "--data", p.data, "--template", "../../../template.yaml", "--no-demo", "--log-level", "error")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		file, err := runner.ReadInfo(p.data)
		if err == nil {
			p.Info = file
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service did not start\n%s", &p.output)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kill ends everything that the service started, at once.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.cmd = nil
	// The next start is over when there is a new one.
	if err := os.Remove(filepath.Join(p.data, "run.json")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// writers send records until all are acknowledged, however often the queue
// goes away meanwhile.
func (p *process) write(t *testing.T, ids []value.ID, done func(n int)) {
	t.Helper()
	endpoint, queue, org := p.SQSEndpoint, p.RecordsQueueURL, p.OrganizationID
	client, err := newSQSClient(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	const perMessage = 10
	for start := 0; start < len(ids); start += perMessage {
		var records []string
		for _, id := range ids[start:min(start+perMessage, len(ids))] {
			records = append(records, fmt.Sprintf(`{"kind":"product","op":"put","version":1,"record":{"id":%q,"name":"p"}}`, id))
		}
		body := fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, org, strings.Join(records, ","))
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String(body)})
			cancel()
			if err == nil {
				break
			}
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		done(start + len(records))
	}
}

// outbox is what a receiver got, by the id of the product.
type outbox struct {
	mu    sync.Mutex
	times map[string]int
}

func (o *outbox) add(e listener.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Verdict == listener.Verified {
		o.times[e.ObjectID]++
	}
}

func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.times)
}

func TestEveryEventIsDeliveredThoughEverythingIsKilled(t *testing.T) {
	const records, kills = 2000, 4
	p := newProcess(t)
	p.start(t)
	received := &outbox{times: map[string]int{}}
	l, err := listener.New(nil, listener.Config{OnEvent: received.add})
	if err != nil {
		t.Fatal(err)
	}
	hook := httptest.NewServer(l)
	defer hook.Close()
	created := p.create(t, "/developers/webhooks/endpoints?applicationId="+p.ApplicationID, fmt.Sprintf(`{"url":%q,"events":["product.created"]}`, hook.URL))
	if err := l.SetSecrets(created["secret"].(string)); err != nil {
		t.Fatal(err)
	}

	ids := make([]value.ID, records)
	for i := range ids {
		ids[i] = value.NewID()
	}
	progress := make(chan int, records)
	go func() {
		defer close(progress)
		p.write(t, ids, func(n int) { progress <- n })
	}()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	next, killed := records/(kills+1), 0
	for n := range progress {
		if n >= next && killed < kills {
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			p.kill(t)
			p.start(t)
			killed++
			next += records / (kills + 1)
		}
	}
	if killed != kills {
		t.Fatalf("killed %d times, want %d", killed, kills)
	}

	await(t, "every product at the receiver", time.Minute, func() bool { return received.len() == records })
	var pending, delivered page
	await(t, "every row delivered", time.Minute, func() bool {
		for status, into := range map[string]*page{"PENDING": &pending, "DELIVERED": &delivered} {
			resp, body := p.user(t, http.MethodGet, "/developers/webhooks/events?limit=1&status="+status, "")
			if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
				time.Sleep(time.Second)
				return false
			}
			if err := json.Unmarshal(body, into); err != nil {
				t.Fatalf("history: %v in %s", err, body)
			}
		}
		return pending.Meta.Total == 0 && delivered.Meta.Total == records
	})
	repeats := 0
	for _, n := range received.times {
		repeats += n - 1
	}
	t.Logf("%d events of %d records over %d kills, %d received again", received.len(), records, kills, repeats)
}
