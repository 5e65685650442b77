package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
)

// maxKeptRejections bounds [Summary.Rejected]; all are counted.
const maxKeptRejections = 20

// Sender hands a batch to the queue, or to the service. A nil error means that it
// has every message of it, but for the records that are refused at once.
type Sender interface {
	Send(ctx context.Context, batch Batch) ([]Refused, error)
}

// Refused is a record of a batch that the service refused.
type Refused struct {
	Message, Position   int // of the record: in the batch and in the message, from 0
	Reason, Field, Text string
}

// Config is what a run may be told; the zero value sends everything, silently.
type Config struct {
	// Events makes the service emit events for the records.
	Events bool
	// Sites are where the products are sold that name none. If it is one, rows of
	// stock that name none are of it, too.
	Sites []value.ID
	// Skip is how many rows of the source an earlier run has dealt with.
	// They are checked again and counted, but not sent.
	Skip int
	// MaxMessage bounds the bytes of a message; 0 is a mebibyte.
	MaxMessage int
	// Acknowledged is called after each batch with the number of rows dealt
	// with so far: what Skip of a later run may be.
	Acknowledged func(rows int) error
	// Refused is called with every row that is not sent; nil is not.
	Refused func(*Rejection) error
	// Warn is told of records with the id of an earlier one; nil is not.
	Warn func(Place, string)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Summary is the outcome of a run.
type Summary struct {
	Rows        int            // of the source, read so far
	Sent        int            // records that the queue has taken
	AlreadySent int            // records that an earlier run had sent
	Refused     int            // rows that were not sent
	Rejected    []*Rejection   // the first 20 of them
	Reasons     map[string]int // all of them by reason

	Kinds map[commerce.Kind]int // good records, sent before or now
}

// Run checks the records as the service will, and sends the good ones. It
// returns what it got done with any error. A run cut short is continued by
// one with Skip set, over the same source.
func Run(ctx context.Context, records iter.Seq2[Record, error], organizationID value.ID, to Sender, cfg Config) (Summary, error) {
	r := newRun(organizationID, to, cfg)
	for record, err := range records {
		if err := r.next(ctx, record, err); err != nil {
			return r.summary, err
		}
	}
	return r.summary, r.flush(ctx)
}

func newRun(organizationID value.ID, to Sender, cfg Config) *run {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &run{
		organizationID: organizationID, to: to, cfg: cfg, packer: newPacker(organizationID, cfg.MaxMessage),
		summary: Summary{Reasons: map[string]int{}, Kinds: map[commerce.Kind]int{}}, seen: map[recordKey]int{},
	}
}

type run struct {
	organizationID value.ID
	to             Sender
	cfg            Config
	packer         *packer
	summary        Summary
	seen           map[recordKey]int // line of the record without a version that came first
}

type recordKey struct {
	kind commerce.Kind
	id   value.ID
}

// maxSeen bounds the memory for repeated ids, to some 100 MB; they are not looked
// for among later records.
const maxSeen = 1 << 20

// next takes one row of the source: a record, or why there is none.
func (r *run) next(ctx context.Context, record Record, err error) error {
	if ends(err) {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("import interrupted after row %d: %w", r.summary.Rows, err)
	}
	r.summary.Rows++
	var encoded []byte
	if err == nil {
		encoded, err = r.prepare(record)
	}
	var bad *Rejection
	switch {
	case errors.As(err, &bad):
		return r.refuse(bad)
	case err != nil:
		return err
	}
	r.summary.Kinds[record.Kind]++
	if r.summary.Rows <= r.cfg.Skip {
		r.summary.AlreadySent++
		return nil
	}
	if r.packer.add(encoded, &record, r.summary.Rows) {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.packer.add(encoded, &record, r.summary.Rows) // what fits a message fits an empty batch
	return nil
}

func (r *run) refuse(bad *Rejection) error {
	r.summary.Refused++
	r.summary.Reasons[bad.Reason]++
	if len(r.summary.Rejected) < maxKeptRejections {
		r.summary.Rejected = append(r.summary.Rejected, bad)
	}
	if r.cfg.Refused == nil {
		return nil
	}
	return r.cfg.Refused(bad)
}

func (r *run) flush(ctx context.Context) error {
	batch := r.packer.take()
	if batch.Records == 0 {
		return nil
	}
	refused, err := r.to.Send(ctx, batch)
	if err != nil {
		return fmt.Errorf("send the records up to row %d: %w", batch.end, err)
	}
	r.summary.Sent += batch.Records - len(refused)
	if err := r.refuseSent(&batch, refused); err != nil {
		return err
	}
	if r.cfg.Acknowledged == nil {
		return nil
	}
	return r.cfg.Acknowledged(batch.end)
}

// refuseSent refuses records of a batch as the service did.
func (r *run) refuseSent(batch *Batch, refused []Refused) error {
	for _, bad := range refused {
		rejection := &Rejection{Reason: bad.Reason, Field: bad.Field, Message: bad.Text}
		if sent := batch.sent[bad.Message]; bad.Position < len(sent) {
			rejection.Place = sent[bad.Position].place
			r.summary.Kinds[sent[bad.Position].kind]--
		}
		if err := r.refuse(rejection); err != nil {
			return err
		}
	}
	return nil
}

// prepare gives the record its sites and applies it to nothing, as the
// service would on its first arrival.
func (r *run) prepare(record Record) ([]byte, error) {
	if record.OrganizationID != nil && *record.OrganizationID != r.organizationID {
		return nil, rejectField(record.Place, "organizationId", "is %s, not the organization of this import", record.OrganizationID)
	}
	record.OrganizationID = nil
	record.Silent = record.Silent || !r.cfg.Events
	if record.Kind == commerce.KindProduct && record.Op == commerce.OpPut && record.SiteIDs == nil && len(r.cfg.Sites) > 0 {
		record.SiteIDs = encode(r.cfg.Sites)
	}
	if record.Kind == commerce.KindStock && record.Op == commerce.OpPut && len(r.cfg.Sites) == 1 {
		record.Body = ofSite(record.Body, r.cfg.Sites[0])
	}
	encoded, err := json.Marshal(record)
	if err != nil {
		return nil, reject(record.Place, err)
	}
	message := r.packer.message(encoded)
	if len(message) > r.packer.most {
		return nil, &Rejection{Place: record.Place, Reason: "too_large", Message: "the record is larger than a message"}
	}
	return encoded, r.check(record.Place, message)
}

// ofSite gives a row of stock the site unless it names one.
func ofSite(row jsontext.Value, site value.ID) jsontext.Value {
	members := map[string]jsontext.Value{}
	if json.Unmarshal(row, &members) != nil || members["siteId"] != nil {
		return row // what is no object the check refuses
	}
	members["siteId"] = encode(site)
	return encode(members)
}

// check reads the record as the service will read it from the queue and
// applies it to nothing, so that what would be refused there for its content
// is refused here, with its line. Only what depends on the stored record, a
// conflict of versions, is left to the service. Fields are named as the row's
// author does, from the top of the record.
func (r *run) check(place Place, message []byte) error {
	changes, refusals := commerce.ParseMessage(message)
	for _, bad := range refusals {
		return &Rejection{
			Place: place, Reason: bad.Reason, Field: strings.TrimPrefix(bad.Field, "record."),
			Message: strings.TrimPrefix(bad.Message, bad.Field+" "),
		}
	}
	for _, change := range changes {
		if _, err := commerce.Apply(nil, change, value.TimeOf(r.cfg.Now())); err != nil {
			bad := reject(place, err)
			bad.Field = strings.TrimPrefix(bad.Field, "record.")
			return bad
		}
		id, err := commerce.Identify(change)
		if err != nil {
			continue // Apply has refused it
		}
		if change.Version == nil {
			r.remember(place, change.Kind, id)
		}
	}
	return nil
}

// remember warns of a record whose id came before. Versions tell such records
// apart, so only those without are looked at.
func (r *run) remember(place Place, kind commerce.Kind, id value.ID) {
	key := recordKey{kind, id}
	switch line, twice := r.seen[key]; {
	case r.cfg.Warn == nil:
	case twice:
		r.cfg.Warn(place, fmt.Sprintf("the %s %s has the id of line %d; one replaces the other", kind, id, line))
	case len(r.seen) < maxSeen:
		r.seen[key] = place.Line
	}
}
