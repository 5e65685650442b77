package queueserver_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
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
	"github.com/commerce-integration/service/pkg/local/queueserver"
)

// process is a server in a process of its own.
type process struct {
	*exec.Cmd
	client *sqs.Client
}

// spawn starts the test binary as a server of dir.
func spawn(t *testing.T, dir string, flags ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-serve", "127.0.0.1:0", "-dir", dir}, flags...)...)
	cmd.Stderr = os.Stderr
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
	sent      map[string]bool           // bodies whose send was acknowledged
	received  map[string]*types.Message // the latest acknowledged receive of a body
	attempted map[string]bool           // bodies whose delete was sent
	deleted   map[string]bool           // bodies whose delete was acknowledged
}

func (l *ledger) note(f func()) {
	l.Lock()
	defer l.Unlock()
	f()
}

// work sends, receives and deletes at the server until the context ends.
func (l *ledger) work(ctx context.Context, client *sqs.Client, queue string, round int) {
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() { l.sendAll(ctx, client, queue, fmt.Sprintf("%d-%d", round, w)) })
		wg.Go(func() { l.receiveAll(ctx, client, queue, w) })
	}
	wg.Wait()
}

func (l *ledger) sendAll(ctx context.Context, client *sqs.Client, queue, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		var entries []types.SendMessageBatchRequestEntry
		for k := range 5 {
			body := fmt.Sprintf("%s-%d-%d", prefix, i, k)
			entries = append(entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(k)), MessageBody: &body, MessageGroupId: &prefix,
			})
		}
		if _, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: entries}); err != nil {
			continue
		}
		l.note(func() {
			for _, e := range entries {
				l.sent[*e.MessageBody] = true
			}
		})
	}
}

// receiveAll deletes two of three messages that it receives and holds on to the third.
func (l *ledger) receiveAll(ctx context.Context, client *sqs.Client, queue string, worker int) {
	for n := worker; ctx.Err() == nil; {
		out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &queue, MaxNumberOfMessages: 5, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			continue
		}
		for _, m := range out.Messages {
			l.note(func() { l.received[*m.Body] = &m })
		}
		for _, m := range out.Messages {
			if n++; n%3 == 0 {
				continue
			}
			l.note(func() { l.attempted[*m.Body] = true })
			if _, err := client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle}); err == nil {
				l.note(func() { l.deleted[*m.Body] = true })
			}
		}
	}
}

// TestNothingAcknowledgedIsLostByAKill kills a busy server three times and then looks at what is left.
func TestNothingAcknowledgedIsLostByAKill(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":            nil,
		"while compacting": {"-compact", "20000"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := &ledger{sent: map[string]bool{}, received: map[string]*types.Message{}, attempted: map[string]bool{}, deleted: map[string]bool{}}
			var queue string
			for round := range 3 {
				queue = l.killedRound(t, dir, flags, round)
			}
			p := spawn(t, dir, flags...)
			l.checkHidden(&harness{TB: t, Client: p.client}, queue)
			p.kill()
			l.checkAll(t, dir, queue)
		})
	}
}

func (l *ledger) killedRound(t *testing.T, dir string, flags []string, round int) (queue string) {
	t.Helper()
	p := spawn(t, dir, flags...)
	h := &harness{TB: t, Client: p.client}
	queue = h.queue("q", "VisibilityTimeout=43200")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { l.work(ctx, p.client, queue, round) })
	goal, deadline := 500*(round+1), time.Now().Add(time.Minute)
	for busy := false; !busy; {
		l.note(func() { busy = len(l.sent) >= goal && len(l.deleted) >= goal/4 })
		if time.Now().After(deadline) {
			t.Fatalf("round %d: the clients are too slow", round)
		}
		time.Sleep(time.Millisecond)
	}
	p.kill()
	cancel()
	wg.Wait()
	return queue
}

// checkHidden checks that what was received before the kill, for 12 hours, is not visible, and that its receipt handles
// hold: half of it is given back through them.
func (l *ledger) checkHidden(h *harness, queue string) {
	h.Helper()
	for _, m := range h.drain(queue) {
		if l.received[*m.Body] != nil {
			h.Errorf("%s is visible, it was received before the kill", *m.Body)
		}
		if n := m.Attributes["ApproximateReceiveCount"]; n != "1" {
			h.Errorf("%s: receive count %s, want 1", *m.Body, n)
		}
	}
	given := map[string]bool{}
	for body, m := range l.received {
		if l.attempted[body] || len(given) > len(l.received)/2 {
			continue
		}
		if err := h.changeVisibility(queue, *m, 0); err != nil {
			h.Errorf("the receipt handle of %s does not hold after the kill: %v", body, err)
		}
		given[body] = true
	}
	for _, m := range h.drain(queue) {
		if n := m.Attributes["ApproximateReceiveCount"]; !given[*m.Body] || n != "2" {
			h.Errorf("%s: receive count %s, want a message that was given back, and 2", *m.Body, n)
		}
		delete(given, *m.Body)
	}
	if len(given) > 0 {
		h.Errorf("%d messages that were given back did not come", len(given))
	}
}

// checkAll looks at the queue 13 hours later, when everything is visible.
func (l *ledger) checkAll(t *testing.T, dir, queue string) {
	t.Helper()
	later := func() time.Time { return time.Now().Add(13 * time.Hour) }
	h := inBubble(t, dir, &queueserver.Config{Clock: later})
	left := maps.Clone(l.sent)
	for body := range l.attempted {
		delete(left, body)
	}
	for _, m := range h.drain(queue) {
		if l.deleted[*m.Body] {
			t.Errorf("%s came back after its delete was acknowledged", *m.Body)
		}
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if l.received[*m.Body] != nil && count < 2 {
			t.Errorf("%s: receive count %d, want that of before the kill and one more", *m.Body, count)
		}
		delete(left, *m.Body)
	}
	if len(left) > 0 {
		t.Errorf("%d of %d acknowledged messages are lost", len(left), len(l.sent))
	}
	t.Logf("%d sent, %d received, %d deleted", len(l.sent), len(l.received), len(l.deleted))
}
