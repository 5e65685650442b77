package queueserver

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
)

// process is a server in a process of its own.
type process struct {
	*exec.Cmd
	client *sqs.Client
}

// spawn starts the test binary as a server of dir.
func spawn(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), "SERVE_QUEUES="+dir), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd}
	t.Cleanup(p.kill)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not print its address: %v", err)
	}
	p.client = newClient("http://"+strings.TrimSpace(address), sdkhttp.New(&http.Transport{MaxIdleConnsPerHost: 20}))
	return p
}

// kill ends the process by SIGKILL and waits for its end.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// ledger is what the clients of a killed server know: what was acknowledged must hold, what was only attempted may.
type ledger struct {
	sync.Mutex
	sent      map[string]bool // bodies whose send was acknowledged
	received  map[string]bool // bodies whose receive was acknowledged
	attempted map[string]bool // bodies whose delete was sent
	deleted   map[string]bool // bodies whose delete was acknowledged

	goal   int           // of sends
	enough chan struct{} // closed when they are done, and a quarter of them are deleted
}

func (l *ledger) note(in map[string]bool, bodies ...string) {
	l.Lock()
	defer l.Unlock()
	for _, body := range bodies {
		in[body] = true
	}
	if l.goal > 0 && len(l.sent) >= l.goal && len(l.deleted) >= l.goal/4 {
		l.goal = 0
		close(l.enough)
	}
}

func (l *ledger) sendAll(ctx context.Context, client *sqs.Client, queue, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		sent := numbered(fmt.Sprintf("%s-%d-", prefix, i), 5)
		entries := make([]types.SendMessageBatchRequestEntry, len(sent))
		for k := range sent {
			entries[k] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(k)), MessageBody: &sent[k], MessageGroupId: &prefix}
		}
		if _, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries}); err == nil {
			l.note(l.sent, sent...)
		}
	}
}

// receiveAll deletes two of three messages that it receives and holds on to the third.
func (l *ledger) receiveAll(ctx context.Context, client *sqs.Client, queue string) {
	for n := 0; ctx.Err() == nil; {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 5, WaitTimeSeconds: 1})
		if err != nil {
			continue
		}
		l.note(l.received, bodies(out.Messages)...)
		for _, m := range out.Messages {
			if n++; n%3 == 0 {
				continue
			}
			l.note(l.attempted, *m.Body)
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err == nil {
				l.note(l.deleted, *m.Body)
			}
		}
	}
}

// TestNothingAcknowledgedIsLostByAKill kills a busy server three times and then checks its queue.
func TestNothingAcknowledgedIsLostByAKill(t *testing.T) {
	dir := t.TempDir()
	l := &ledger{sent: map[string]bool{}, received: map[string]bool{}, attempted: map[string]bool{}, deleted: map[string]bool{}}
	var queue string
	for round := range 3 {
		queue = l.killedRound(t, dir, round)
	}
	now := time.Now()
	h := inBubble(t, dir, &Config{Clock: func() time.Time { return now }})
	for _, m := range h.drain(queue) {
		if l.received[*m.Body] {
			t.Errorf("%s is visible, it was received for 12 hours before the kill", *m.Body)
		}
	}
	now = now.Add(13 * time.Hour)
	left := maps.Clone(l.sent)
	maps.DeleteFunc(left, func(body string, _ bool) bool { return l.attempted[body] })
	for _, m := range h.drain(queue) {
		if n := m.Attributes["ApproximateReceiveCount"]; l.deleted[*m.Body] || n == "1" {
			t.Errorf("%s: receive count %s; want one that was received before, and not deleted", *m.Body, n)
		}
		delete(left, *m.Body)
	}
	if len(left) > 0 {
		t.Errorf("%d of %d acknowledged messages are lost", len(left), len(l.sent))
	}
	t.Logf("%d sent, %d received, %d deleted", len(l.sent), len(l.received), len(l.deleted))
}

func (l *ledger) killedRound(t *testing.T, dir string, round int) (queue string) {
	t.Helper()
	p := spawn(t, dir)
	queue = (&harness{TB: t, Client: p.client}).queue("q", "VisibilityTimeout=43200")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.enough, l.goal = make(chan struct{}), 500*(round+1)
	var clients sync.WaitGroup
	for n := range 3 {
		clients.Go(func() { l.sendAll(ctx, p.client, queue, fmt.Sprintf("%d-%d", round, n)) })
		clients.Go(func() { l.receiveAll(ctx, p.client, queue) })
	}
	select {
	case <-l.enough:
	case <-time.After(time.Minute):
		t.Fatalf("round %d: the clients are too slow", round)
	}
	p.kill()
	cancel()
	clients.Wait()
	return queue
}

// TestMain lets the test binary be a server of a directory, which prints its address and serves until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SERVE_QUEUES"); dir != "" {
		fmt.Fprintln(os.Stderr, serveDirectory(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveDirectory(dir string) error {
	s, err := Open(dir, nil)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, s.Handler()) //nolint:gosec // a test
}
