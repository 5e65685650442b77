package ops_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// status reads the queues of the URLs, all of the server without any.
func (s state) status(t *testing.T, local bool, urls ...string) []*ops.QueueStatus {
	t.Helper()
	client := s.Queues().Client
	var err error
	if len(urls) == 0 {
		if urls, err = ops.QueuesWithPrefix(t.Context(), client, ""); err != nil {
			t.Fatal(err)
		}
	}
	queues, err := ops.ReadStatus(t.Context(), client, urls, local)
	if err != nil {
		t.Fatal(err)
	}
	return queues
}

func named(queues []*ops.QueueStatus, name string) *ops.QueueStatus {
	if i := slices.IndexFunc(queues, func(q *ops.QueueStatus) bool { return q.Name == name }); i >= 0 {
		return queues[i]
	}
	return &ops.QueueStatus{}
}

func TestStatusShowsWhatWaitsAndWhatToRun(t *testing.T) {
	t.Parallel()
	s := newState(t)
	for queue, want := range map[string]struct {
		stuck bool
		next  string
	}{
		servicetest.MainQueue: {false, ""},
		"DeliveriesDLQ":       {true, "commerce redrive deliveries"},
		"IndexJobsDLQ":        {true, "commerce redrive index-jobs"},
		recordsDLQ:            {true, "commerce rejects, commerce redrive records"},
		servicetest.ParkQueue: {true, "commerce replay"},
	} {
		s.send(t, queue, "m", "m")
		all := s.status(t, true)
		for _, q := range all {
			if q.Stuck && q.Name != queue {
				t.Errorf("%s is stuck, and nothing is in it", q.Name)
			}
		}
		if q := named(all, queue); q.Visible != 2 || q.InFlight+q.Delayed != 0 || q.Stuck != want.stuck || q.Next != want.next {
			t.Errorf("%s: got %+v, want %+v", queue, q, want)
		}
		s.take(t, queue)
	}
}

func TestStatusOfNamedQueuesFindsTheirDeadLetters(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.send(t, "DeliveriesDLQ", "m")
	main := s.Queues().URL(servicetest.MainQueue)
	queues := s.status(t, false, main, s.Queues().URL("IndexJobsQueue"))
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	if want := []string{servicetest.MainQueue, "IndexJobsQueue", "DeliveriesDLQ", "IndexJobsDLQ"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if got, want := named(queues, "DeliveriesDLQ").Next, "commerce redrive deliveries --queue-url "+main; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusMovesDeadLettersToTheQueueThatTheyAreNamedAfter(t *testing.T) {
	t.Parallel()
	s := newState(t)
	s.send(t, recordsDLQ, "m")
	imports, records := s.Queues().URL("ImportsQueue"), s.Queues().URL(recordsQueue)
	for url, urls := range map[string][]string{records: {imports, records}, imports: {imports}} {
		if got := named(s.status(t, false, urls...), recordsDLQ).Next; !strings.HasSuffix(got, " --queue-url "+url) {
			t.Errorf("of %q: got %q, want %s", urls, got, url)
		}
	}
}

func TestRedriveMovesEverythingBackToTheQueue(t *testing.T) {
	t.Parallel()
	s := newState(t)
	const messages = 25
	s.send(t, "DeliveriesDLQ", strings.Split(strings.Repeat("m", messages), "")...)
	arn := func(queue string) string {
		arn, err := ops.QueueARN(t.Context(), s.Queues().Client, s.Queues().URL(queue))
		if err != nil {
			t.Fatal(err)
		}
		return arn
	}
	task, err := ops.StartRedrive(t.Context(), s.Queues().Client, arn("DeliveriesDLQ"), arn(servicetest.MainQueue))
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := task.Wait(t.Context()); err != nil || moved != messages {
		t.Errorf("moved %d, %v; want %d", moved, err, messages)
	}
	if back, left := s.take(t, servicetest.MainQueue), s.take(t, "DeliveriesDLQ"); len(back) != messages || len(left) != 0 {
		t.Errorf("got %d messages back and %d left, want %d and 0", len(back), len(left), messages)
	}
}

func TestStatusOfAStackIsOfTheQueuesThatAreNamedAfterIt(t *testing.T) {
	t.Parallel()
	s := newState(t)
	for _, name := range []string{"shop-ParkQueue-1X2Y", "shop-RecordsQueue-3Z", "other-ParkQueue-1"} {
		made, err := s.Queues().Client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Queues().Client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: aws.String("m")}); err != nil {
			t.Fatal(err)
		}
	}
	urls, err := ops.QueuesWithPrefix(t.Context(), s.Queues().Client, "shop-")
	if err != nil || len(urls) != 2 {
		t.Fatalf("got %v, %v; want two queues", urls, err)
	}
	park := named(s.status(t, false, urls...), "shop-ParkQueue-1X2Y")
	if !park.Stuck || !strings.HasPrefix(park.Next, "commerce replay --dry-run --queue-url http://") {
		t.Errorf("got %+v, want the command that looks into the park", park)
	}
	if _, err := ops.QueuesWithPrefix(t.Context(), s.Queues().Client, "nobody-"); err == nil {
		t.Error("no error of a stack without queues")
	}
}
