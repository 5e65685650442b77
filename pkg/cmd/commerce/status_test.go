package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/google/go-cmp/cmp"
)

// line returns the cells of a queue's line, "" when it has none. An age in
// seconds is "0s": it depends on when one looks.
func line(stdout, queue string) string {
	for l := range strings.Lines(stdout) {
		if cells := strings.Fields(l); len(cells) > 0 && cells[0] == queue {
			for i, cell := range cells {
				if _, err := time.ParseDuration(cell); err == nil && strings.HasSuffix(cell, "s") {
					cells[i] = "0s"
				}
			}
			return strings.Join(cells[1:], " ")
		}
	}
	return ""
}

func (q *queues) put(t *testing.T, url string, n int) {
	t.Helper()
	for range n {
		if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("m")}); err != nil {
			t.Fatal(err)
		}
	}
}

// codeOf is the exit code of a command that returned the error.
func codeOf(err error) int {
	own := (*exitError)(nil)
	if errors.As(err, &own) {
		return own.code
	}
	return exitCode(err)
}

func TestStatusShowsWhatWaitsAndWhatToRun(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	made, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(ops.ParkQueueName)})
	if err != nil {
		t.Fatal(err)
	}
	park := *made.QueueUrl
	for _, step := range []struct {
		name  string
		url   string
		code  int
		lines map[string]string
	}{
		{"nothing waits", "", 0, map[string]string{"RecordsQueue": "0 0 0 - -", "DeliveriesDLQ": "0 0 0 - -", "ParkQueue": "0 0 0 - -"}},
		{"a queue at work", q.file.DeliveriesQueueURL, 0, map[string]string{"DeliveriesQueue": "2 0 0 0s -"}},
		{"dead deliveries", q.dlqs["Deliveries"], 1, map[string]string{"DeliveriesDLQ": "2 0 0 0s commerce redrive deliveries"}},
		{"dead index jobs", q.dlqs["IndexJobs"], 1, map[string]string{"IndexJobsDLQ": "2 0 0 0s commerce redrive index-jobs"}},
		{"refused records", q.dlqs["Records"], 1, map[string]string{"RecordsDLQ": "2 0 0 0s commerce rejects, commerce redrive records"}},
		{"parked changes", park, 1, map[string]string{"ParkQueue": "2 0 0 0s commerce replay"}},
	} {
		if step.url != "" {
			q.put(t, step.url, 2)
		}
		stdout, stderr, err := runCommand(t.Context(), "status", "--data", q.data)
		if code := codeOf(err); code != step.code {
			t.Errorf("%s: exit code %d with %q, want %d", step.name, code, stderr, step.code)
		}
		for queue, want := range step.lines {
			if got := line(stdout, queue); got != want {
				t.Errorf("%s: %s: got %q, want %q in\n%s", step.name, queue, got, want, stdout)
			}
		}
		if step.url == "" {
			continue
		}
		if _, err := q.drain(t.Context(), step.url); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStatusOfNamedQueuesFindsTheirDeadLetters(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	q.put(t, q.dlqs["Deliveries"], 1)
	q.put(t, q.dlqs["Records"], 1)
	stdout, stderr, err := runCommand(t.Context(), "status", "--data", t.TempDir(), "--endpoint", q.file.SQSEndpoint,
		"--queue-url", q.file.DeliveriesQueueURL, "--queue-url", q.file.IndexJobsQueueURL)
	if code := codeOf(err); code != 1 || !strings.Contains(stderr, "1 message in DeliveriesDLQ") || strings.Contains(stderr, "Records") {
		t.Errorf("exit code %d with %q, want 1 and the dead deliveries alone", code, stderr)
	}
	if got, want := line(stdout, "DeliveriesDLQ"), "1 0 0 0s commerce redrive deliveries --queue-url "+q.file.DeliveriesQueueURL; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var names []string
	for l := range strings.Lines(stdout) {
		names = append(names, strings.Fields(l)[0])
	}
	if diff := cmp.Diff([]string{"QUEUE", "DeliveriesQueue", "IndexJobsQueue", "DeliveriesDLQ", "IndexJobsDLQ"}, names); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestStatusMovesDeadLettersToTheQueueThatTheyAreNamedAfter(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	imports := q.redriving(t, "ImportsQueue", q.dlqs["Records"])
	q.put(t, q.dlqs["Records"], 1)
	stdout, _, _ := runCommand(t.Context(), "status", "--data", t.TempDir(), "--endpoint", q.file.SQSEndpoint, "--queue-url", imports, "--queue-url", q.file.RecordsQueueURL)
	if got := line(stdout, "RecordsDLQ"); !strings.HasSuffix(got, " commerce redrive records --queue-url "+q.file.RecordsQueueURL) {
		t.Errorf("got %q, want the queue of records", got)
	}
	stdout, _, _ = runCommand(t.Context(), "status", "--data", t.TempDir(), "--endpoint", q.file.SQSEndpoint, "--queue-url", imports)
	if got := line(stdout, "RecordsDLQ"); !strings.HasSuffix(got, " --queue-url "+imports) {
		t.Errorf("got %q, want the only queue that is known", got)
	}
}

func TestStatusOfAStackIsOfTheQueuesThatAreNamedAfterIt(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	for _, name := range []string{"shop-ParkQueue-1X2Y", "shop-RecordsQueue-3Z", "other-ParkQueue-1"} {
		made, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
		if err != nil {
			t.Fatal(err)
		}
		q.put(t, *made.QueueUrl, 1)
	}
	stdout, stderr, err := runCommand(t.Context(), "status", "--data", q.data, "--endpoint", q.file.SQSEndpoint, "--stack", "shop")
	if code := codeOf(err); code != 1 || !strings.Contains(stderr, "commerce: 1 message in shop-ParkQueue-1X2Y\n") {
		t.Errorf("exit code %d with %q, want 1 for the park", code, stderr)
	}
	if got := line(stdout, "shop-ParkQueue-1X2Y"); !strings.HasPrefix(got, "1 0 0 0s commerce replay --dry-run --queue-url http://") {
		t.Errorf("got %q, want the command that looks into the park", got)
	}
	if strings.Contains(stdout, "other-") || strings.Contains(stdout, "DeliveriesQueue") {
		t.Errorf("got queues of others:\n%s", stdout)
	}
}

func TestStatusThatCannotLookSaysSo(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	for _, args := range [][]string{
		{"--data", t.TempDir()},
		{"--data", q.data, "--queue-url", q.file.SQSEndpoint + "/000000000000/Nowhere"},
		{"--data", q.data, "--endpoint", q.file.SQSEndpoint, "--stack", "nobody"},
		{"--data", q.data, "--stack", "a", "--queue-url", "b"},
		{"--no-such-flag"},
	} {
		if _, stderr, err := runCommand(t.Context(), append([]string{"status"}, args...)...); codeOf(err) != 2 {
			t.Errorf("%v: exit code %d with %q, want 2", args, codeOf(err), stderr)
		}
	}
}
