package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/sqsqueue"
	"github.com/commerce-integration/service/pkg/value"
)

// rejectsCommand is one run of commerce rejects.
type rejectsCommand struct {
	target                     queueTarget
	dlqURL                     string
	organization, kind, reason string
	show, limit                int
	replay, json               bool
}

func newRejectsCommand() *cobra.Command {
	c := &rejectsCommand{}
	cmd := &cobra.Command{
		Use: "rejects", Short: "Count, show and send back refused records", Args: cobra.NoArgs,
		Long: `Rejects looks into the dead letter queue of the records queue, where each record
that was refused waits in a message of its own. It counts them by organization,
kind, reason and field; --show prints some of them, with what is wrong. --replay
sends them to the records queue once more, where they are applied as if they had
come now; what is refused again comes back. A record without a version so
replaces whatever was stored since. Messages that do not hold a single record
are counted as what they are and never sent; commerce redrive records moves
everything.

Looking takes nothing out. SQS has no other way to look than to receive, so
messages are hidden from others meanwhile, and for 5 minutes when the command is
killed; their receive count rises, from which nothing follows in a queue without
a redrive policy. A queue with one is refused. The dead letter queue is the one
of the records queue's redrive policy, unless --dlq-url names another. It keeps
a record for 14 days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessInterrupted(c.run(cmd.Context(), cmd.OutOrStdout()))
		},
	}
	c.target.flags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.dlqURL, "dlq-url", "", "URL of the dead letter queue (default: by the redrive policy)")
	flags.StringVar(&c.organization, "organization", "", "those of one organization, a UUID")
	flags.StringVar(&c.kind, "kind", "", "those of one kind, such as product")
	flags.StringVar(&c.reason, "reason", "", "those refused for one reason, such as validation_failed")
	flags.IntVar(&c.show, "show", 0, "print so many records")
	flags.BoolVar(&c.replay, "replay", false, "send the records to the records queue again")
	flags.IntVar(&c.limit, "limit", 0, fmt.Sprintf("most records to send (default: all, of %d messages at most)", passMost))
	flags.BoolVar(&c.json, "json", false, "print JSON: one object of counts, or one of each record a line")
	cmd.MarkFlagsMutuallyExclusive("show", "replay")
	cmd.MarkFlagsMutuallyExclusive("json", "replay")
	return cmd
}

func (c *rejectsCommand) run(ctx context.Context, out io.Writer) error {
	switch {
	case c.limit < 0 || c.show < 0:
		return errors.New("--limit and --show: must be positive")
	case c.limit > 0 && !c.replay:
		return errors.New("--limit goes with --replay")
	}
	client, err := c.target.resolve(ctx, func(f *runner.Info) string { return f.RecordsQueueURL })
	if err != nil {
		return err
	}
	dead, err := c.deadLetters(ctx, client)
	if err != nil {
		return err
	}
	p := &pass{client: client, queueURL: dead, workers: passWorkers}
	switch {
	case c.replay:
		return c.send(ctx, p, out)
	case c.show > 0:
		return c.print(ctx, p, out)
	}
	return c.count(ctx, p, out)
}

func (c *rejectsCommand) deadLetters(ctx context.Context, client *sqs.Client) (string, error) {
	if c.dlqURL != "" {
		return c.dlqURL, nil
	}
	arn, _, err := (&redriveCommand{target: c.target}).queues(ctx, client)
	if err != nil {
		return "", err
	}
	return queueOfARN(ctx, client, arn)
}

// What the message of a dead letter queue holds.
const (
	oneRecord   = "record"
	manyRecords = "many records"
	noRecord    = "no record"
	notJSON     = "not JSON"
)

// reject is a message of the dead letter queue, as far as it tells what it is.
type reject struct {
	received
	sqsqueue.Rejection
	holds                  string
	organization, kind, id string // "" where the message does not say
}

// tooOften is the reason of a message that was not refused: SQS moved it,
// after the last of its receives had ended without success.
const tooOften = "received too often"

func newReject(m received) *reject {
	r := &reject{received: m, Rejection: sqsqueue.RejectionOf(m.attributes), holds: oneRecord}
	if r.Reason == "" && m.source != "" {
		r.Reason = tooOften
	}
	var envelope struct {
		OrganizationID jsontext.Value `json:"organizationId"`
		Kind           jsontext.Value `json:"kind"`
		Record         jsontext.Value `json:"record"`
		Records        jsontext.Value `json:"records"`
	}
	switch body := []byte(m.body); {
	case !jsontext.Value(body).IsValid(lenient()...):
		r.holds = notJSON
	case json.Unmarshal(body, &envelope, lenient()...) != nil:
		r.holds = noRecord
	case envelope.Records != nil:
		r.holds = manyRecords
	}
	r.organization, r.kind = plain(envelope.OrganizationID), plain(envelope.Kind)
	var record struct {
		ID jsontext.Value `json:"id"`
	}
	if json.Unmarshal(envelope.Record, &record, lenient()...) == nil {
		r.id = plain(record.ID)
	}
	return r
}

// lenient reads what a strict reader has refused.
func lenient() []json.Options {
	return []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// plain is the text of a JSON string, and any other value as it is, cut to
// the length of an identifier.
func plain(v jsontext.Value) string {
	const most = 64
	var text string
	if v.Kind() != '"' || json.Unmarshal(v, &text, lenient()...) != nil {
		text = string(v)
	}
	return cut(text, most)
}

// wanted tells whether a message is one of those that were asked for.
func (c *rejectsCommand) wanted(r *reject) bool {
	return (c.organization == "" || strings.EqualFold(c.organization, r.organization)) &&
		(c.kind == "" || c.kind == r.kind) && (c.reason == "" || c.reason == r.Reason)
}

// rejectGroup is what refused records are counted by.
type rejectGroup struct{ holds, organization, kind, reason, field string }

func (g rejectGroup) compare(other rejectGroup) int {
	return cmp.Or(strings.Compare(g.organization, other.organization), strings.Compare(g.kind, other.kind),
		strings.Compare(g.reason, other.reason), strings.Compare(g.field, other.field), strings.Compare(g.holds, other.holds))
}

func (c *rejectsCommand) count(ctx context.Context, p *pass, out io.Writer) error {
	found := tally[rejectGroup]{other: rejectGroup{reason: "others"}}
	position := regexp.MustCompile(`\[\d+\]`)
	p.each = func(_ context.Context, batch []received) ([]received, error) {
		for _, m := range batch {
			if r := newReject(m); c.wanted(r) {
				field := position.ReplaceAllLiteralString(firstLine(r.Field), "[]")
				found.add(rejectGroup{r.holds, r.organization, r.kind, firstLine(r.Reason), field}, r.sent)
			}
		}
		return nil, nil
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if c.json {
		return countsJSON(out, &found, !p.full())
	}
	rows := [][]string{{"ORGANIZATION", "KIND", "REASON", "FIELD", "MESSAGES", "OLDEST"}}
	for _, g := range found.sorted(rejectGroup.compare) {
		kind := g.kind
		if g.holds != oneRecord {
			kind = "(" + g.holds + ")"
		}
		counts := found.groups[g]
		rows = append(rows, []string{g.organization, kind, g.reason, g.field, fmt.Sprint(counts.n), timeCell(counts.oldest)})
	}
	if len(rows) > 1 {
		if err := writeTable(out, rows); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, counted(found.all, "message"))
	tellFull(out, p)
	return nil
}

// countsJSON writes the counts as one object.
func countsJSON(out io.Writer, found *tally[rejectGroup], complete bool) error {
	type group struct {
		Holds          string    `json:"holds"`
		OrganizationID string    `json:"organizationId"`
		Kind           string    `json:"kind"`
		Reason         string    `json:"reason"`
		Field          string    `json:"field"`
		Messages       int       `json:"messages"`
		Oldest         time.Time `json:"oldest"`
	}
	var groups []group
	for _, g := range found.sorted(rejectGroup.compare) {
		counts := found.groups[g]
		groups = append(groups, group{g.holds, g.organization, g.kind, g.reason, g.field, counts.n, counts.oldest})
	}
	return writeJSON(out, struct {
		Messages int     `json:"messages"`
		Complete bool    `json:"complete"` // false when there may be more
		Groups   []group `json:"groups"`
	}{found.all, complete, groups})
}

func writeJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v, lenient()...)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// print shows the first records that were asked for.
func (c *rejectsCommand) print(ctx context.Context, p *pass, out io.Writer) error {
	shown := 0
	p.workers = 1 // no more are hidden than it takes
	p.each = func(_ context.Context, batch []received) ([]received, error) {
		for _, m := range batch {
			r := newReject(m)
			if !c.wanted(r) || shown >= c.show {
				continue
			}
			if shown++; shown == c.show {
				p.end()
			}
			if err := r.print(out, c.json); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return p.run(ctx)
}

func (r *reject) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return r.printJSON(out)
	}
	const most = 2000
	what := strings.Join([]string{orDash(r.organization), orDash(r.kind), orDash(r.id)}, " ")
	if r.holds != oneRecord {
		what = "(" + r.holds + ") " + what
	}
	wrong := r.Reason
	if r.Field != "" {
		wrong += " " + r.Field
	}
	if r.Message != "" {
		wrong += ": " + r.Message
	}
	_, err := fmt.Fprintf(out, "%s  %s\n  %s\n  %s\n", timeCell(r.sent), visible(what), visible(orDash(wrong)), visible(cut(r.body, most)))
	return err
}

func orDash(text string) string { return cmp.Or(text, "-") }

func (r *reject) printJSON(out io.Writer) error {
	body := jsontext.Value(r.body)
	if r.holds == notJSON {
		text, err := json.Marshal(r.body, lenient()...)
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		body = text
	}
	return writeJSON(out, struct {
		MessageID       string         `json:"messageId"`
		SentAt          time.Time      `json:"sentAt"`
		Holds           string         `json:"holds"`
		OrganizationID  string         `json:"organizationId"`
		Kind            string         `json:"kind"`
		ID              string         `json:"id"`
		Reason          string         `json:"reason"`
		Field           string         `json:"field"`
		Message         string         `json:"message"`
		SourceMessageID string         `json:"sourceMessageId"`
		Body            jsontext.Value `json:"body"`
	}{r.received.id, r.sent, r.holds, r.organization, r.kind, r.id, r.Reason, r.Field, r.Message, r.SourceMessageID, body})
}

// sending is one run of --replay. Its pass has one worker, so that all of a
// batch is sent before anything more is received.
type sending struct {
	*rejectsCommand
	pass *pass

	left  int             // how many more may be sent
	sent  map[string]bool // ids of the messages that were sent
	again int             // records among them that were refused again meanwhile
	other int             // messages that hold no single record
}

func (c *rejectsCommand) send(ctx context.Context, p *pass, out io.Writer) error {
	if c.target.queueURL == p.queueURL {
		return fmt.Errorf("queue %s cannot be both where refused records are and where they are sent", p.queueURL)
	}
	s := &sending{rejectsCommand: c, pass: p, left: c.limit, sent: map[string]bool{}}
	if c.limit == 0 {
		s.left = passMost
	}
	p.workers, p.each = 1, s.each
	err := p.run(ctx)
	fmt.Fprintf(out, "sent %s to %s\n", counted(len(s.sent), "record"), c.target.queueURL)
	if s.again > 0 {
		fmt.Fprintf(out, "%s came back refused\n", counted(s.again, "record"))
	}
	if s.other > 0 {
		fmt.Fprintf(out, "left %s without a single record\n", counted(s.other, "message"))
	}
	tellFull(out, p)
	return err
}

// each sends the records of a batch. What was sent is deleted; a kill between
// the two sends it twice, which changes nothing the second time.
func (s *sending) each(ctx context.Context, batch []received) (done []received, err error) {
	var taken []*reject
	for _, m := range batch {
		if r := newReject(m); s.wanted(r) && s.take(r) {
			taken = append(taken, r)
		}
	}
	ids, errs := make([]string, len(taken)), make([]error, len(taken))
	var group sync.WaitGroup
	for i, r := range taken {
		group.Go(func() { ids[i], errs[i] = s.one(ctx, r) })
	}
	group.Wait()
	for i, r := range taken {
		if errs[i] == nil {
			s.sent[ids[i]] = true
			done = append(done, r.received)
		}
	}
	return done, errors.Join(errs...)
}

// one sends a record and returns the id of its new message.
func (s *sending) one(ctx context.Context, r *reject) (string, error) {
	in := &sqs.SendMessageInput{QueueUrl: &s.target.queueURL, MessageBody: &r.body}
	if org, err := value.ParseID(r.organization); err == nil {
		in.MessageGroupId = aws.String(org.String())
	}
	out, err := s.pass.client.SendMessage(ctx, in)
	if err != nil {
		return "", fmt.Errorf("send the record of message %s to %s: %w", r.received.id, s.target.queueURL, err)
	}
	return aws.ToString(out.MessageId), nil
}

// take tells whether a message is to be sent. One that this run has sent and
// that was refused again in the meantime is not, or there would be no end.
func (s *sending) take(r *reject) bool {
	switch {
	case r.holds != oneRecord:
		s.other++
		return false
	case s.sent[r.SourceMessageID]:
		s.again++
		return false
	}
	if s.left--; s.left <= 0 {
		s.pass.end()
	}
	return s.left >= 0
}
