package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/parallel"
	"github.com/commerce-integration/service/pkg/base/retry"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/index"
)

// TailRetention is how long entries of a list's tail are kept. They are flushed
// into segments within a week; the rest is for a flush that is held up. Removal
// by age is free.
const TailRetention = 30 * 24 * time.Hour

// The tail of a list is a sequence of items whose numbers rise by exactly one
// from 1, so that a reader notices a missing one. Each is inserted, if it does not
// exist yet: two writers never share a number, and no entry appears before one that a
// reader has seen. When age has removed every entry, the manifest knows how far they went.
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

// maxAppendTries bounds the tries of an entry. Of 64 writers at a table that answers
// after 10 ms, four in five tries meet another writer's entry.
const maxAppendTries = 60

// appending is an entry on its way into a tail.
type appending struct {
	index.Append
	last, next writtenTail
	ask        bool // where the tail ends
	item       item
}

// AppendTails appends an entry to each of some tails, no two of them the same, each on
// its own: 25 take one call. Entries become visible in the order of their sequences, at
// times that rise with them, whatever the clocks of the writers say. An entry whose
// answer was lost may be there twice; after an error each may be there.
//
// A process that is alone at a tail puts its next entry behind its last one,
// without asking where the tail ends. Where others write too it asks each time:
// most of its tries would be refused. Only age removes entries, also those that are
// flushed, so the number behind an entry younger than writtenTime is free only at
// the tail's end. The id of an erased organization is not used again before that
// time is over, as pkg/ops/OPERATING.md asks.
func (t *Table) AppendTails(ctx context.Context, appends ...index.Append) ([]index.Position, error) {
	all := make([]appending, len(appends))
	left := make([]*appending, len(appends))
	for i, a := range appends {
		last := t.tails.Get(tailPartition(a.Org, a.List))
		all[i] = appending{Append: a, last: last, ask: !last.alone || t.now().Sub(last.at) >= writtenTime}
		left[i] = &all[i]
	}
	err := retry.Contended(ctx, maxAppendTries, func() (done bool, err error) {
		left, err = t.tryAppends(ctx, left)
		return len(left) == 0, err
	})
	if err != nil {
		return nil, fmt.Errorf("append to %d tails: %w", len(appends), err)
	}
	written := make([]index.Position, len(all))
	for i := range all {
		written[i] = all[i].next.Position
	}
	return written, nil
}

// tryAppends returns the entries in whose places others were faster.
func (t *Table) tryAppends(ctx context.Context, all []*appending) (refused []*appending, err error) {
	ctx, cancel := context.WithTimeout(ctx, tailPutTime)
	defer cancel()
	if err := parallel.UntilError(ctx, maxInsertParallel, slices.All(all), t.place); err != nil {
		return nil, err
	}
	items := make([]item, len(all))
	for i, a := range all {
		items[i] = a.item
	}
	for i, err := range t.insert(ctx, "append to the tail", items, maxInsertParallel) {
		a := all[i]
		switch {
		case err == nil:
			t.tails.Set(tailPartition(a.Org, a.List), a.next)
		case errors.Is(err, errRefused):
			a.ask, refused = true, append(refused, a)
		default:
			return nil, err
		}
	}
	return refused, nil
}

// place makes the item of an entry for the tail's end.
func (t *Table) place(ctx context.Context, _ int, a *appending) (err error) {
	end := a.last.Position
	if a.ask {
		if end, err = t.TailEnd(ctx, a.Org, a.List); err != nil {
			return err
		}
	}
	now := t.now()
	next := index.Position{Sequence: end.Sequence + 1, At: max(value.TimeOf(now), end.At+1), Previous: end.At}
	body, err := a.Entry(ctx, next)
	if err == nil {
		err = checkBody("an entry of the tail", body)
	}
	if err == nil && a.List != index.DeliveryListName {
		err = t.announce(ctx, a.Org, next.At)
	}
	next.Sum = end.Sum + uint64(len(body))
	a.next = writtenTail{next, now, end.Sequence == a.last.Sequence}
	a.item = tailKey(a.Org, a.List, next.Sequence).newItem(typeTail)
	a.item[attrAt], a.item[attrSum], a.item[attrBody] = num(next.At), num(next.Sum), binary(body)
	a.item[attrExpires] = num(now.Add(TailRetention).Unix())
	return err
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
