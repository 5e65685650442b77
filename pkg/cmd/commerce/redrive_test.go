package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestRedriveMovesEverythingBackToTheQueue(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	const messages = 25
	for i := range messages {
		_, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.dlqs["Deliveries"]), MessageBody: aws.String(fmt.Sprint(i))})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A second run finds the first one's task in the list and must not take
	// it for its own.
	for _, want := range []string{"moved 25 messages from", "moved 0 messages from"} {
		stdout, stderr, err := runCommand(t.Context(), "redrive", "deliveries", "--data", q.data)
		if err != nil || !strings.Contains(stdout, want) {
			t.Fatalf("got %q, %q and %v, want %q", stdout, stderr, err, want)
		}
	}
	back, err := q.drain(t.Context(), q.file.DeliveriesQueueURL)
	if err != nil {
		t.Fatal(err)
	}
	left, err := q.drain(t.Context(), q.dlqs["Deliveries"])
	if err != nil {
		t.Fatal(err)
	}
	if len(back) != messages || len(left) != 0 {
		t.Errorf("got %d messages back and %d left, want %d and 0", len(back), len(left), messages)
	}
}

func TestRedriveNeedsAPolicyOrTheNameOfTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	plain, err := q.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("Plain")})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"redrive", "records", "--data", q.data, "--queue-url", *plain.QueueUrl}
	if _, stderr, err := runCommand(t.Context(), args...); err == nil || !strings.Contains(stderr, "has no redrive policy") {
		t.Errorf("without a name: got %q, want a word on the policy", stderr)
	}
	_, stderr, err := runCommand(t.Context(), append(args, "--dlq-url", q.dlqs["Records"])...)
	if err != nil {
		t.Errorf("with a name: got %q, want success", stderr)
	}
}
