package dynamo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// TailRetention is how long entries of a list's tail are kept. They are flushed
// into segments within a week; the rest is for a flush that is held up. Removal
// by age is free.
const TailRetention = 30 * 24 * time.Hour

// The tail of a list is a sequence of items whose numbers rise by exactly one
// from 1, so that a reader notices a missing one. Each is put on the condition
// that it does not exist yet: two writers never share a number, and no entry
// appears before one that a reader has seen. When age has removed every entry,
// the manifest knows how far they went.
//
// The alternative is to keep recent changes in the manifest's own item, which
// is read and written at once but paid for whole with every change: a write unit
// for each KB that it holds, instead of 1.
const (
	attrBody = "body"
	attrAt   = "at"
	attrSum  = "sum"
	// attrToken is random and new with every write: a writer knows its own
	// write by it.
	attrToken = "mark"

	// contendedAttempts bounds the tries of a write that many make at a time.
	// Every lost try is another's success.
	contendedAttempts = 20
	// tailPutTime bounds a try with its repetitions, and so how old an entry's
	// time can be when readers see it.
	tailPutTime = 10 * time.Second
	// writtenTime is how long a process remembers its last entry. It is far shorter
	// than TailRetention: age must not have removed what others appended since.
	writtenTime = time.Hour
)

// writtenTail is the entry that a process wrote last to a tail.
type writtenTail struct {
	index.Position
	at    time.Time // when, by the clock of the process
	alone bool      // nobody else had appended since the process's entry before it
}

// maxAppendTries bounds the puts of an entry. Of 64 writers at a table that answers
// after 10 ms, four in five puts meet another writer's entry.
const maxAppendTries = 60

// AppendTail appends an entry. Entries become visible in the order of their
// sequences, at times that rise with them, whatever the clocks of the writers
// say. After an error the entry may be there nevertheless.
//
// A process that is alone at a tail puts its next entry behind its last one,
// without asking where the tail ends. Where others write too it asks each time:
// most of its puts would be refused. Only age removes entries, also those that are
// flushed, so the number behind an entry younger than writtenTime is free only at
// the tail's end. The id of an erased organization is not used again before that
// time is over, as pkg/ops/OPERATING.md asks.
//
// entry makes the body, of at most [index.MaxBody] bytes, for the position that
// the entry would get, Sum not set. It is called before each try, so that it
// can do what must be done by the time the entry is there, even if the caller
// dies then. Its error ends the attempt.
func (t *Table) AppendTail(ctx context.Context, org value.ID, list string, entry func(next index.Position) (body []byte, err error)) (next index.Position, err error) {
	token, tail := newToken(), tailPartition(org, list)
	last := t.tails.Get(tail)
	ask := !last.alone || t.now().Sub(last.at) >= writtenTime
	err = retry.Contended(ctx, maxAppendTries, func() (done bool, err error) {
		end := last.Position
		if ask {
			if end, err = t.TailEnd(ctx, org, list); err != nil {
				return false, err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, tailPutTime)
		defer cancel()
		now := t.now()
		next = index.Position{Sequence: end.Sequence + 1, At: max(value.TimeOf(now), end.At+1), Previous: end.At}
		body, err := entry(next)
		if err == nil {
			err = checkBody("an entry of the tail", body)
		}
		if err == nil && list != index.DeliveryListName {
			err = t.announce(ctx, org, next.At)
		}
		if err != nil {
			return false, err
		}
		next.Sum = end.Sum + uint64(len(body))
		it := tailKey(org, list, next.Sequence).newItem(typeTail)
		it[attrAt], it[attrSum], it[attrBody] = num(next.At), num(next.Sum), binary(body)
		it[attrExpires] = num(now.Add(TailRetention).Unix())
		_, done, err = t.putOnce(ctx, "append to the tail", it, token, ifAbsent)
		if done {
			t.tails.Set(tail, writtenTail{next, now, end.Sequence == last.Sequence})
		}
		ask = true
		return done, err
	})
	if err != nil {
		return index.Position{}, fmt.Errorf("append to the tail of %s: %w", list, err)
	}
	return next, nil
}

func checkBody(what string, body []byte) error {
	if len(body) > index.MaxBody {
		return fmt.Errorf("%s of %d bytes: at most %d fit into an item", what, len(body), index.MaxBody)
	}
	return nil
}

// newToken returns a random number other than 0.
func newToken() uint64 {
	return 1 + rand.Uint64N(math.MaxUint64) //nolint:gosec // distinguishes writes, keeps no secret
}

// TailEnd returns the position of the newest entry that there is or was, the
// zero one before the first. Once age has removed it, Sum is 0; Previous is never
// set.
//
// TTL deletes entries in any order, perhaps the newest first. A young entry
// proves that no later one has been removed; with an old one the manifest is
// asked too, which covered the removed entries.
func (t *Table) TailEnd(ctx context.Context, org value.ID, list string) (end index.Position, err error) {
	in := partition(tailPartition(org, list), tailPrefix)
	in.Limit, in.ScanIndexForward = aws.Int32(1), aws.Bool(false)
	const projection = "SK, #at, #sum"
	in.ProjectionExpression, in.ExpressionAttributeNames = aws.String(projection), namesIn(projection)
	items, _, err := t.queryPage(ctx, in)
	if err != nil {
		return end, err
	}
	if len(items) == 1 {
		newest, err := decodeTail(items[0])
		if err != nil {
			return end, err
		}
		end = index.Position{Sequence: newest.Sequence, Sum: getUnsigned(items[0], attrSum), At: newest.At}
		if t.now().Sub(end.At.Std()) < TailRetention/2 {
			return end, nil
		}
	}
	covered, err := t.covered(ctx, org, list)
	if err != nil || covered.Sequence <= end.Sequence {
		return end, err
	}
	return covered, nil
}

// TailAfter passes the entries after the sequence to each, in order. A strongly
// consistent read costs twice as much; an eventually consistent one may lack
// the newest entries, and single ones before them.
func (t *Table) TailAfter(ctx context.Context, org value.ID, list string, after uint64, consistent bool, each func(index.StoredEntry) error) error {
	in := between(tailPartition(org, list), behind(tailKey(org, list, after).sk), behind(tailPrefix))
	in.ConsistentRead = &consistent
	return t.tail(ctx, in, func(e index.StoredEntry) (bool, error) { return true, each(e) })
}

// TailBack passes the entries up to the sequence to each, the newest first, for
// as long as it wants more. It reads strongly consistent.
func (t *Table) TailBack(ctx context.Context, org value.ID, list string, upTo uint64, each func(index.StoredEntry) (more bool, err error)) error {
	in := between(tailPartition(org, list), tailPrefix, tailKey(org, list, upTo).sk)
	in.ScanIndexForward = aws.Bool(false)
	return t.tail(ctx, in, each)
}

func (t *Table) tail(ctx context.Context, in *dynamodb.QueryInput, each func(index.StoredEntry) (more bool, err error)) error {
	return t.query(ctx, in, func(it item) (bool, error) {
		e, err := decodeTail(it)
		if err != nil {
			return false, err
		}
		return each(e)
	})
}

func decodeTail(it item) (index.StoredEntry, error) {
	sk := getString(it, attrSK)
	sequence, err := strconv.ParseUint(strings.TrimPrefix(sk, tailPrefix), 16, 64)
	if err != nil {
		return index.StoredEntry{}, fmt.Errorf("the tail's key %q: %w", sk, err)
	}
	return index.StoredEntry{Sequence: sequence, At: getTime(it, attrAt), Body: getBinary(it, attrBody)}, nil
}
