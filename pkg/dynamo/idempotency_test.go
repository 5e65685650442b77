package dynamo_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

func TestARequestIsStoredInThePlaceOfTheOneThatWasRead(t *testing.T) {
	client, name := dynamotest.Client(t)
	now := time.Date(2026, 11, 21, 6, 35, 41, 0, time.UTC)
	table := dynamo.New(client, name, func() time.Time { return now })
	key := idempotency.NewKey(value.NewID(), "user", "k")
	record := func(token uint64) *idempotency.Record {
		return &idempotency.Record{
			Key: key, Fingerprint: idempotency.FingerprintOf("POST", "/p", "", nil, ""), Token: token,
			LockedUntil: value.TimeOf(now).Add(time.Minute), ExpiresAt: value.TimeOf(now).Add(time.Hour),
		}
	}
	put := func(what string, r *idempotency.Record, token uint64, current *idempotency.Record, done bool) {
		t.Helper()
		got, written, err := table.PutRequest(t.Context(), r, token)
		if err != nil || written != done || cmp.Diff(got, current) != "" {
			t.Errorf("%s: got %+v, written %t, %v; want %+v, %t", what, got, written, err, current, done)
		}
	}
	put("in the place of one that is not there", record(1), 9, nil, false)
	put("the first", record(1), 0, nil, true)
	put("the first again, whose answer was lost", record(1), 0, nil, true)
	put("another", record(2), 0, record(1), false)
	put("in the place of another", record(3), 2, record(1), false)
	other := record(4)
	other.Key.Organization = value.NewID()
	put("of another organization", other, 0, nil, true)

	answered := record(5)
	answered.Answer = bytes.Repeat([]byte{1, 2, 3}, 390<<10/3) // the largest that an item of 400 KB takes is not less
	put("with the largest answer", answered, 1, nil, true)
	put("in the place of an answer", record(6), 0, answered, false)
	must(t, table.RemoveRequest(t.Context(), key, 1))
	put("after its lock was freed too late", record(6), 0, answered, false)

	now = now.Add(time.Hour - time.Second)
	put("before it expires", record(6), 0, answered, false)
	now = now.Add(time.Second)
	put("when it has expired", record(6), 0, nil, true)
	must(t, table.RemoveRequest(t.Context(), key, 6))
	put("after it was removed", record(7), 0, nil, true)
}
