package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/base/pause"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/ops"
)

// eraseCommand is one run of commerce erase. Its queues are found as those of
// commerce status.
type eraseCommand struct {
	statusCommand
	customer string
	yes      bool
	pause    func(context.Context, time.Duration) error
}

func newEraseCommand() *cobra.Command { return makeEraseCommand(pause.For) }

func makeEraseCommand(pause func(context.Context, time.Duration) error) *cobra.Command {
	c := &eraseCommand{pause: pause}
	cmd := &cobra.Command{
		Use: "erase", Short: "Erase an organization or a customer everywhere", Args: cobra.NoArgs,
		Long: `Erase deletes all that the service keeps of an organization, or of one customer of
it, for good: no tombstone and no event says so. Without --yes it only counts.

Of an organization it deletes every item of the table: records, tombstones,
applications, keys, endpoints, webhook history, usage, kept answers and the index.
Of a customer it deletes the record, the orders and invoices whose customerId
names it, their tombstones, the payloads and webhook history of their events, and
the receipts that say why one of them was refused;
it rebuilds the organization's lists and deletes their old parts. In either case
it deletes the messages of dead letter queues and the park that belong to these.

Stop the senders first, and let the records queues and the stream run empty: what
arrives later is new. If integrators shall learn of a deletion, send deletes and
wait for their webhooks before. A record that names the customer elsewhere than in
customerId stays and is named. After erasing an organization, deploy or wait for
an hour before its id is used again: functions keep lists in memory.

At its end erase looks for everything again. The exit code is 0 when nothing is
left, 1 when something is, 2 when it could not tell. It may be interrupted and
repeated. It reads the whole table some times, and waits a minute and a quarter
before it deletes parts of the index. pkg/ops/OPERATING.md lists what backups
and logs keep, and for how long.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	c.tableFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&c.organization, "organization", "", "the organization, a UUID (required)")
	f.StringVar(&c.customer, "customer", "", "a customer of the organization, a UUID (default: the whole organization)")
	f.BoolVar(&c.yes, "yes", false, "erase; without it only count")
	c.json.flag(cmd)
	f.StringVar(&c.endpoint, "endpoint", "", "SQS endpoint (default: the local runner's, or AWS)")
	f.StringVar(&c.stack, "stack", "", "name of the state's stack in AWS, for its queues")
	f.StringArrayVar(&c.queueURLs, "queue-url", nil, "URL of a queue; may be repeated, instead of --stack")
	f.StringVar(&c.parkURL, "park-url", "", "URL of the park, beside --queue-url")
	return cmd
}

// eraseResult is what commerce erase prints.
type eraseResult struct {
	Erased   bool            `json:"erased"`
	Items    ops.EraseCounts `json:"items"`
	Messages map[string]int  `json:"messages"` // by queue
	Left     []string        `json:"left"`
}

func (c *eraseCommand) run(ctx context.Context, out, errOut io.Writer) error {
	e, err := c.open(ctx, errOut)
	if err != nil {
		return trouble(err)
	}
	bar := newBar(errOut, "erasing", -1)
	e.Progress = func(erased int) { _ = bar.Set(erased) }
	result, err := c.erase(ctx, e)
	_ = bar.Finish()
	if err != nil {
		return trouble(fmt.Errorf("%w; give the same command again to go on", unlessInterrupted(err)))
	}
	switch err := c.json.print(out, result, func() error { return result.print(out) }); {
	case err != nil:
		return trouble(err)
	case len(result.Left) > 0:
		return &exitError{exitFound, errors.New("not everything is erased")}
	case !c.yes:
		return nil
	}
	return trouble(e.Checkpoint.Remove())
}

func (c *eraseCommand) open(ctx context.Context, errOut io.Writer) (*ops.Erasure, error) {
	e := &ops.Erasure{Pause: c.pause}
	if c.organization == "" {
		return nil, wrongUsage("--organization: required")
	}
	var err error
	if e.Organization, err = value.ParseID(c.organization); err != nil {
		return nil, fmt.Errorf("--organization %w", err)
	}
	if c.customer != "" {
		if e.Customer, err = value.ParseID(c.customer); err != nil {
			return nil, fmt.Errorf("--customer %w", err)
		}
	}
	table, info, err := c.openTable(ctx)
	if err != nil {
		return nil, err
	}
	if info == nil && c.stack == "" && len(c.queueURLs) == 0 {
		return nil, wrongUsage("beside --table, name the queues with --stack or --queue-url")
	}
	e.Table, e.Lists = table, index.NewLists(table, dynamo.Shards)
	e.Compactor = compactor.New(table, e.Lists.All(), time.Now, newLogger(errOut, slog.LevelError))
	fingerprint := ops.Fingerprint("erase", c.table, table.Name(), os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), e.Organization, e.Customer)
	e.Checkpoint = ops.Checkpoint(filepath.Join(c.data, "erase-"+fingerprint[:16]+".json"))
	return e, e.Open()
}

// erase erases, or only counts, and looks for what is left.
func (c *eraseCommand) erase(ctx context.Context, e *ops.Erasure) (*eraseResult, error) {
	queues, client, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	result := &eraseResult{Erased: c.yes, Messages: map[string]int{}, Left: []string{}}
	if !c.yes {
		if result.Items, err = e.Find(ctx); err != nil {
			return nil, err
		}
		_, err = c.messages(ctx, e, client, queues, result.Messages, false)
		return result, errors.Join(err, e.Checkpoint.Remove())
	}
	if result.Items, err = e.Erase(ctx); err != nil {
		return nil, err
	}
	if result.Left, err = c.messages(ctx, e, client, queues, result.Messages, true); err != nil {
		return nil, err
	}
	again := map[string]int{}
	if _, err := c.messages(ctx, e, client, queues, again, false); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(again)) {
		result.Left = append(result.Left, fmt.Sprintf("%s in %s", counted(again[name], "message"), name))
	}
	left, err := e.Left(ctx)
	result.Left = append(result.Left, left...)
	return result, err
}

// messages counts, or erases, the messages in queues that nothing takes from,
// and says which stay.
func (c *eraseCommand) messages(ctx context.Context, e *ops.Erasure, client *sqs.Client, queues []*ops.QueueStatus, counts map[string]int, erase bool) (left []string, err error) {
	for _, q := range queues {
		url, keeps := q.Keeps()
		if !keeps {
			continue
		}
		found, mixed, err := e.EraseMessages(ctx, client, url, erase)
		if err != nil {
			return nil, err
		}
		if found > 0 {
			counts[q.Name] = found
		}
		if mixed > 0 {
			left = append(left, fmt.Sprintf("%s in %s with records of others too: redrive them first", counted(mixed, "message"), q.Name))
		}
	}
	return left, nil
}

func (r *eraseResult) print(out io.Writer) error {
	head := "FOUND"
	if r.Erased {
		head = "ERASED"
	}
	rows := [][]string{{"WHAT", head}}
	for _, what := range slices.Sorted(maps.Keys(r.Items)) {
		rows = append(rows, []string{what, fmt.Sprint(r.Items[what])})
	}
	for _, queue := range slices.Sorted(maps.Keys(r.Messages)) {
		rows = append(rows, []string{"message in " + queue, fmt.Sprint(r.Messages[queue])})
	}
	if err := writeTable(out, rows); err != nil {
		return err
	}
	text := "nothing is left\n"
	switch {
	case !r.Erased:
		text = "nothing was erased: give --yes to erase\n"
	case len(r.Left) > 0:
		text = "left:\n  " + visible(strings.Join(r.Left, "; ")) + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
