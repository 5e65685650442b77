package ingest_test

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/ingest"
	"github.com/commerce-integration/service/pkg/lab/faults"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// meteredHarness counts the calls of the table. It has found that its organization
// has no keys of signed senders.
type meteredHarness struct {
	*harness
	meter *faults.Meter
}

func newMeteredHarness(t *testing.T) *meteredHarness {
	t.Helper()
	client, name := dynamotest.Client(t)
	f := &meteredHarness{newHarness(t), faults.NewMeter()}
	f.table.Table = dynamo.New(dynamodb.New(client.Options(), f.meter.Measure), name, func() time.Time { return start })
	f.ingester = ingest.New(f.table, f.rejects, f.imports, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	f.apply(t, f.one(value.NewRandomID(), "first", 1))
	return f
}

// calls applies bodies and returns the operations on the table, those that were
// called several times with their number.
func (f *meteredHarness) calls(t *testing.T, bodies ...string) (operations []string) {
	t.Helper()
	f.meter.Reset()
	f.apply(t, bodies...)
	uses := f.meter.Uses()
	for _, operation := range slices.Sorted(maps.Keys(uses)) {
		if n := uses[operation].Calls; n > 1 {
			operation = fmt.Sprint(operation, " ", n)
		}
		operations = append(operations, operation)
	}
	return operations
}

// idAt is an id that was made so long before the ingester's time.
func idAt(age time.Duration) value.ID {
	hash := value.NewRandomID()
	return value.TimedID(value.TimeOf(start.Add(-age)), hash[:])
}

func (f *harness) deletion(id value.ID, version int) string {
	return fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"delete","version":%d,"record":{"id":%q}}`, f.org, version, id)
}

// stored is the revision of a product and its name, "" of a tombstone.
func (f *harness) stored(t *testing.T, id value.ID) (revision value.Time, name string) {
	t.Helper()
	found := f.table.ReadRecords(t.Context(), []dynamo.RecordRef{{OrganizationID: f.org, Kind: commerce.KindProduct, ID: id}})[0]
	if found.Err != nil || found.Stored == nil {
		t.Fatalf("record %s: %+v", id, found)
	}
	if p := f.product(t, id); p != nil {
		name = p.Name
	}
	return found.Stored.Revision, name
}

const (
	onePut    = "PutItem"
	twoPuts   = "PutItem 2"
	batchGet  = "BatchGetItem"
	batchPuts = "BatchExecuteStatement"
)

func TestARecordIsPutWithoutAReadIfItsIDIsNew(t *testing.T) {
	f := newMeteredHarness(t)
	random := idAt(0)
	random[6] = 0x40
	for _, row := range []struct {
		name string
		id   value.ID
		read bool
	}{
		{"made now", idAt(0), false},
		{"ten minutes old", idAt(10 * time.Minute), false},
		{"older", idAt(10*time.Minute + time.Millisecond), true},
		{"a minute ahead", idAt(-time.Minute), false},
		{"further ahead", idAt(-time.Minute - time.Millisecond), true},
		{"of another version", random, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := []string{onePut}
			if row.read {
				want = []string{batchGet, onePut}
			}
			if got := f.calls(t, f.one(row.id, "new", 1)); !slices.Equal(got, want) {
				t.Errorf("calls %v, want %v", got, want)
			}
			if revision, name := f.stored(t, row.id); revision != value.TimeOf(start) || name != "new" {
				t.Errorf("stored %q at %s", name, revision)
			}
		})
	}
}

func TestABatchReadsOnlyRecordsThatDoNotLookNew(t *testing.T) {
	f := newMeteredHarness(t)
	var bodies []string
	for range 5 {
		bodies = append(bodies, f.one(idAt(time.Second), "new", 1))
	}
	if got, want := f.calls(t, bodies...), []string{batchPuts}; !slices.Equal(got, want) {
		t.Errorf("all new: calls %v, want %v", got, want)
	}
	if got, want := f.calls(t, bodies...), []string{batchPuts, batchGet}; !slices.Equal(got, want) {
		t.Errorf("all come again: calls %v, want %v", got, want)
	}
	old := idAt(time.Hour)
	f.apply(t, f.one(old, "old", 1))
	got := f.calls(t, f.one(idAt(0), "new", 1), f.one(old, "changed", 2), f.one(idAt(0), "new", 1))
	if want := []string{batchPuts, batchGet, onePut}; !slices.Equal(got, want) || f.meter.Uses()[batchGet].Reads != 1 {
		t.Errorf("one is old: calls %v with %+v, want %v and one record read", got, f.meter.Uses()[batchGet], want)
	}
	if _, name := f.stored(t, old); name != "changed" {
		t.Errorf("stored %q", name)
	}
}

// A record that looks new and is stored ends as it would if it had been read.
func TestARecordThatOnlyLooksNew(t *testing.T) {
	for _, row := range []struct {
		name     string
		before   func(f *harness, id value.ID) []string
		then     func(f *harness, id value.ID) []string
		calls    []string
		revision value.Time // since the start
		stored   string
	}{
		{"the same message again", puts(1), puts(1), []string{onePut}, 0, "v1"},
		{"a newer version", puts(1), puts(2), []string{twoPuts}, 1, "v2"},
		{"an older version", puts(2), puts(1), []string{onePut}, 0, "v2"},
		{"twice in a batch", nil, puts(1, 2), []string{twoPuts}, 1, "v2"},
		{"the same message twice in a batch", nil, puts(1, 1), []string{onePut}, 0, "v1"},
		{"in the wrong order in a batch", nil, puts(2, 1), []string{onePut}, 0, "v2"},
		{"a put of a deleted one", gone(1), puts(2), []string{twoPuts}, 1, "v2"},
		{"a put before its deletion, late", gone(2), puts(1), []string{onePut}, 0, ""},
		{"a deletion", puts(1), gone(2), []string{batchGet, onePut}, 1, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, id := newMeteredHarness(t), idAt(time.Minute)
			if row.before != nil {
				f.apply(t, row.before(f.harness, id)...)
			}
			if got := f.calls(t, row.then(f.harness, id)...); !slices.Equal(got, row.calls) {
				t.Errorf("calls %v, want %v", got, row.calls)
			}
			if revision, name := f.stored(t, id); revision != value.TimeOf(start)+row.revision || name != row.stored {
				t.Errorf("stored %q at %d, want %q at %d", name, revision-value.TimeOf(start), row.stored, row.revision)
			}
			if len(f.rejects.got) > 0 {
				t.Errorf("refused %v", f.rejects.from)
			}
		})
	}
}

// puts makes messages that put a product in the versions.
func puts(versions ...int) func(*harness, value.ID) []string {
	return func(f *harness, id value.ID) (bodies []string) {
		for _, version := range versions {
			bodies = append(bodies, f.one(id, fmt.Sprint("v", version), version))
		}
		return bodies
	}
}

// gone makes the message that deletes a product.
func gone(version int) func(*harness, value.ID) []string {
	return func(f *harness, id value.ID) []string { return []string{f.deletion(id, version)} }
}
