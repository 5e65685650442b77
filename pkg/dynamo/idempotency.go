package dynamo

import (
	"context"
	"time"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
)

// requestItem is a request's record as it is stored, with its time to live.
type requestItem struct {
	Fingerprint idempotency.Fingerprint
	Token       uint64 `dynamodbav:"mark"`
	LockedUntil value.Time
	Answer      []byte `dynamodbav:"body,omitempty"` // sealed; absent while the request runs
	ExpiresAt   int64  `dynamodbav:"expiresAtEpoch"` // seconds
}

// PutRequest stores the record in the place of the one with the token, of
// which 0 means that there is none, or one that has expired. Unless done, it
// returns the record that is there, nil when there is none.
func (t *Table) PutRequest(ctx context.Context, r *idempotency.Record, token uint64) (current *idempotency.Record, done bool, err error) {
	it, done, err := t.putOnce(ctx, "put a request", encodeRequest(r), r.Token, t.ifLive(token))
	if done || err != nil {
		return nil, done, err
	}
	current, err = decodeRequest(r.Key, it)
	return current, false, err
}

// RemoveRequest removes the record with the token.
func (t *Table) RemoveRequest(ctx context.Context, key idempotency.Key, token uint64) error {
	_, _, err := t.removeItem(ctx, "remove a request", t.remove(requestKey(key), ifLast(attrToken, token)))
	return err
}

// withAnswers appends the writes that keep answers to those of a transaction
// that makes what they report.
func (t *Table) withAnswers(writes []write, kept []*idempotency.Kept) []write {
	for _, k := range kept {
		if k != nil {
			writes = append(writes, t.put(encodeRequest(&k.Record), ifLast(attrToken, k.Locked)))
		}
	}
	return writes
}

// orLost is orTaken for a transaction whose writes from the position on keep
// answers.
func orLost(refused refusals, position int, kept []*idempotency.Kept, err error) error {
	if err == nil && refused.has(position) {
		return kept[0].Lost()
	}
	return orTaken(refused, err)
}

func encodeRequest(r *idempotency.Record) item {
	return encode(requestKey(r.Key), typeRequest, requestItem{
		Fingerprint: r.Fingerprint, Token: r.Token, LockedUntil: r.LockedUntil, Answer: r.Answer,
		ExpiresAt: r.ExpiresAt.Add(time.Second - time.Millisecond).Std().Unix(), // the next whole second
	})
}

// decodeRequest returns nil for an absent item.
func decodeRequest(key idempotency.Key, it item) (*idempotency.Record, error) {
	stored, err := decodeFound[requestItem](it)
	if err != nil || stored == nil {
		return nil, err
	}
	return &idempotency.Record{
		Key: key, Fingerprint: stored.Fingerprint, Token: stored.Token, LockedUntil: stored.LockedUntil,
		Answer: stored.Answer, ExpiresAt: value.Time(stored.ExpiresAt * 1000),
	}, nil
}
