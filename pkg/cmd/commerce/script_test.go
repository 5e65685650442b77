package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/queue"
)

// TestCommandLines runs the terminal sessions of testdata/script against a
// queue server of their own. The paths of a session are absolute: commands run
// inside the test's process.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			q := newQueues(env.T().(testing.TB))
			env.Values["queues"] = q
			env.Setenv("DATA", q.data)
			env.Setenv("QUEUE", q.file.RecordsQueueURL)
			env.Setenv("ORG", testOrganization)
			env.Setenv("KINDS", strings.Join(kindNames(), ", "))
			env.Setenv("SITE1", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f07")
			env.Setenv("SITE2", "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f08")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"commerce": scriptCommerce,
			"sent":     scriptSent,
			"refuse":   scriptRefuse,
			"park":     scriptPark,
		},
	})
}

func scriptCommerce(ts *testscript.TestScript, neg bool, args []string) {
	stdout, stderr, err := runCommand(context.Background(), args...)
	fmt.Fprint(ts.Stdout(), stdout)
	fmt.Fprint(ts.Stderr(), stderr)
	if err != nil {
		fmt.Fprintf(ts.Stderr(), "exit %d\n", exitCode(err))
	}
	if (err != nil) != neg {
		ts.Fatalf("commerce %q: %v\n%s%s", args, err, stdout, stderr)
	}
}

// scriptSent prints what an import has sent, a record a line, in the order of
// the lines' text.
func scriptSent(ts *testscript.TestScript, _ bool, _ []string) {
	records, err := ts.Value("queues").(*queues).sent(context.Background())
	ts.Check(err)
	var lines []string
	for _, r := range records {
		line := fmt.Sprintf("%s %s %s", r.Op, r.Kind, r.Record)
		if r.SiteIDs != nil {
			line += fmt.Sprintf(" sites=%v", r.SiteIDs)
		}
		if r.Version != nil {
			line += fmt.Sprintf(" version=%d", *r.Version)
		}
		if !r.Silent {
			line += " loud"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(ts.Stdout(), line)
	}
}

// scriptRefuse puts what is refused of the messages of a file, one a line,
// where ingest puts it.
func scriptRefuse(ts *testscript.TestScript, _ bool, args []string) {
	q := ts.Value("queues").(*queues)
	rejects := queue.NewRejects(q.Queue("RecordsDLQ"))
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		changes, refusals := commerce.ParseMessage([]byte(strings.TrimSuffix(line, "\n")))
		for _, c := range changes {
			if _, err := commerce.Apply(nil, c, value.TimeOf(time.Now())); err != nil {
				refusals = append(refusals, commerce.Refuse(c, err))
			}
		}
		ts.Check(rejects.Reject(context.Background(), "m-1", refusals))
	}
}

// scriptPark parks an empty stream record: park CONSUMER CAUSE.
func scriptPark(ts *testscript.TestScript, _ bool, args []string) {
	q := ts.Value("queues").(*queues)
	record := events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{SequenceNumber: "1"}}
	ts.Check(queue.NewPark(q.Queue(ops.ParkQueueName)).Park(context.Background(), args[0], record, errors.New(args[1])))
}
