package ops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
)

// What a message of the rejects queue holds.
const (
	OneRecord   = "record"
	ManyRecords = "many records"
	NoRecord    = "no record"
	NotJSON     = "not JSON"
)

// Reject is a message of the dead letter queue of records, as far as it can be
// read. What the message does not say is "".
type Reject struct {
	Message
	Holds          string `json:"holds"`
	OrganizationID string `json:"organizationId"`
	Kind           string `json:"kind"`
	RecordID       string `json:"id"`
	queue.Rejection
	JSON jsontext.Value `json:"body"` // the body, as a string if it is not JSON
}

// receivedTooOften is the reason of a message that ingest did not refuse: SQS
// moved it because none of its receives ended in success.
const receivedTooOften = "received too often"

func newReject(m Message) *Reject {
	r := &Reject{Message: m, Rejection: queue.RejectionOf(m.Attributes), Holds: OneRecord, JSON: jsontext.Value(m.Body)}
	if r.Reason == "" && m.SourceARN != "" {
		r.Reason = receivedTooOften
	}
	var envelope struct {
		OrganizationID jsontext.Value `json:"organizationId"`
		Kind           jsontext.Value `json:"kind"`
		Record         jsontext.Value `json:"record"`
		Records        jsontext.Value `json:"records"`
	}
	var record struct {
		ID jsontext.Value `json:"id"`
	}
	switch {
	case !r.JSON.IsValid(LenientJSON()...):
		r.Holds = NotJSON
		r.JSON, _ = jsontext.AppendQuote(nil, m.Body) // replaces invalid UTF-8
	case json.Unmarshal(r.JSON, &envelope, LenientJSON()...) != nil:
		r.Holds = NoRecord
	case envelope.Records != nil:
		r.Holds = ManyRecords
	case json.Unmarshal(envelope.Record, &record, LenientJSON()...) == nil:
		r.RecordID = plainText(record.ID)
	}
	r.OrganizationID, r.Kind = plainText(envelope.OrganizationID), plainText(envelope.Kind)
	return r
}

// LenientJSON accepts what a strict reader refuses.
func LenientJSON() []json.Options {
	return []json.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// plainText returns the text of a JSON string and any other value as it is,
// shortened to the length of an identifier.
func plainText(v jsontext.Value) string {
	const maxCharacters = 64
	var text string
	if v.Kind() != '"' || json.Unmarshal(v, &text, LenientJSON()...) != nil {
		text = string(v)
	}
	return Shorten(text, maxCharacters)
}

// RejectFilter selects rejects; an empty field accepts all.
type RejectFilter struct{ OrganizationID, Kind, Reason string }

// accepted returns the rejects among messages that the filter accepts.
func (f *RejectFilter) accepted(messages []Message) (accepted []*Reject) {
	for _, m := range messages {
		r := newReject(m)
		if (f.OrganizationID == "" || strings.EqualFold(f.OrganizationID, r.OrganizationID)) &&
			(f.Kind == "" || f.Kind == r.Kind) && (f.Reason == "" || f.Reason == r.Reason) {
			accepted = append(accepted, r)
		}
	}
	return accepted
}

// RejectGroup is what CountRejects counts by.
type RejectGroup struct{ Holds, OrganizationID, Kind, Reason, Field string }

// Compare orders groups of equal counts.
func (g RejectGroup) Compare(other RejectGroup) int {
	return slices.Compare([]string{g.OrganizationID, g.Kind, g.Reason, g.Field, g.Holds},
		[]string{other.OrganizationID, other.Kind, other.Reason, other.Field, other.Holds})
}

// CountRejects counts rejects by what is wrong. Positions in arrays do not
// count.
func CountRejects(ctx context.Context, scan *QueueScan, filter RejectFilter) (*GroupCounts[RejectGroup], error) {
	counts := newGroupCounts[RejectGroup]()
	position := regexp.MustCompile(`\[\d+\]`)
	return counts, scan.Run(ctx, scanWorkers, func(_ context.Context, batch []Message) ([]Message, error) {
		for _, r := range filter.accepted(batch) {
			field := position.ReplaceAllLiteralString(FirstLine(r.Field), "[]")
			counts.add(RejectGroup{r.Holds, r.OrganizationID, r.Kind, FirstLine(r.Reason), field}, r.SentAt)
		}
		return nil, nil
	})
}

// ShowRejects calls show for each reject that the scan's limit allows, one at
// a time.
func ShowRejects(ctx context.Context, scan *QueueScan, filter RejectFilter, show func(*Reject) error) error {
	// One worker, so that no more messages are in flight than needed.
	return scan.Run(ctx, 1, func(_ context.Context, batch []Message) ([]Message, error) {
		for _, r := range filter.accepted(batch) {
			if !scan.Take() {
				break
			}
			if err := show(r); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// Resend sends rejects to the records queue again.
type Resend struct {
	Client   *sqs.Client
	QueueURL string
	Filter   RejectFilter

	// What Run did, in messages.
	Sent          int
	RefusedAgain  int // sent, and refused again meanwhile
	WithoutRecord int // left, because they do not hold a single record

	sent map[string]bool // message IDs, and digests of bodies
}

// origin names what was sent and refused: its message, or its body where a
// message of the full size had no room for that.
func (r *Reject) origin() string { return cmp.Or(r.SourceMessageID, digest(r.Body)) }

func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return string(sum[:])
}

// Run sends what the scan finds and takes. The scan must be of another queue.
func (s *Resend) Run(ctx context.Context, scan *QueueScan) error {
	s.sent = map[string]bool{}
	// One worker sends all of a batch before it receives more. Otherwise it
	// could receive a record that was sent and refused again before it knows
	// that it has sent it.
	return scan.Run(ctx, 1, func(ctx context.Context, batch []Message) ([]Message, error) {
		return s.sendBatch(ctx, scan, batch)
	})
}

// sendBatch returns the messages that it sent. After a crash before their
// deletion they are sent twice, which has no effect the second time.
func (s *Resend) sendBatch(ctx context.Context, scan *QueueScan, batch []Message) (done []Message, err error) {
	var taken []*Reject
	for _, r := range s.Filter.accepted(batch) {
		switch {
		case r.Holds != OneRecord:
			s.WithoutRecord++
		case s.sent[r.origin()]: // or there would be no end
			s.RefusedAgain++
		case scan.Take():
			taken = append(taken, r)
		}
	}
	ids, errs := make([]string, len(taken)), make([]error, len(taken))
	var group sync.WaitGroup
	for i, r := range taken {
		group.Go(func() { ids[i], errs[i] = s.send(ctx, r) })
	}
	group.Wait()
	for i, r := range taken {
		if errs[i] == nil {
			s.sent[ids[i]], s.sent[digest(r.Body)] = true, true
			done = append(done, r.Message)
		}
	}
	s.Sent += len(done)
	return done, errors.Join(errs...)
}

// send returns the ID of the new message.
func (s *Resend) send(ctx context.Context, r *Reject) (string, error) {
	in := &sqs.SendMessageInput{QueueUrl: &s.QueueURL, MessageBody: &r.Body}
	if org, err := value.ParseID(r.OrganizationID); err == nil {
		in.MessageGroupId = aws.String(org.String())
	}
	out, err := s.Client.SendMessage(ctx, in)
	if err != nil {
		return "", fmt.Errorf("send the record of message %s to %s: %w", r.ID, s.QueueURL, err)
	}
	return aws.ToString(out.MessageId), nil
}
