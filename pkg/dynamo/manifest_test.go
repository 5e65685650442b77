package dynamo_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// Names of manifests, as package index makes them.
const (
	liveManifest    = "MANIFEST#3.12"
	rebuildManifest = "REBUILD#3.12"
)

func putManifest(t *testing.T, table *dynamo.Table, org value.ID, m index.StoredManifest) {
	t.Helper()
	if done, err := table.PutManifest(t.Context(), org, list, liveManifest, m); !done || err != nil {
		t.Fatalf("put version %d: %t, %v", m.Version, done, err)
	}
}

func checkManifest(t *testing.T, table *dynamo.Table, org value.ID, which string, want *index.StoredManifest) {
	t.Helper()
	got, err := table.Manifest(t.Context(), org, list, which)
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%s: %v (-want +got):\n%s", which, err, cmp.Diff(want, got))
	}
}

func TestManifestIsReplacedByItsNextVersionOnly(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	checkManifest(t, table, org, liveManifest, nil)
	stands := index.StoredManifest{}
	for i, row := range []struct {
		version uint64
		want    bool
	}{{2, false}, {1, true}, {1, false}, {3, false}, {2, true}, {2, false}, {1, false}, {4, false}, {3, true}} {
		m := index.StoredManifest{Version: row.version, Covered: uint64(i), CoveredAt: value.Time(7 * i), Body: fmt.Appendf(nil, "body %d", i)}
		done, err := table.PutManifest(t.Context(), org, list, liveManifest, m)
		if done != row.want || err != nil {
			t.Fatalf("put version %d over %d: %t, %v, want %t", row.version, stands.Version, done, err, row.want)
		}
		if done {
			stands = m
		}
		if stands.Version > 0 {
			checkManifest(t, table, org, liveManifest, &stands)
		}
	}
	checkManifest(t, table, org, rebuildManifest, nil)
	checkManifest(t, table, value.NewID(), liveManifest, nil)
}

func TestManifestIsDroppedInItsVersion(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	live := index.StoredManifest{Version: 1, Covered: 9, Body: []byte("live")}
	putManifest(t, table, org, live)
	if done, err := table.PutManifest(t.Context(), org, list, rebuildManifest, index.StoredManifest{Version: 1, Body: []byte("r")}); !done || err != nil {
		t.Fatal(done, err)
	}
	for _, row := range []struct {
		org     value.ID
		version uint64
		want    error
	}{{value.NewID(), 1, nil}, {org, 2, fault.ErrChanged}, {org, 1, nil}, {org, 1, nil}} {
		if err := table.DeleteManifest(t.Context(), row.org, list, rebuildManifest, row.version); !errors.Is(err, row.want) {
			t.Errorf("drop version %d: %v, want %v", row.version, err, row.want)
		}
	}
	checkManifest(t, table, org, rebuildManifest, nil)
	checkManifest(t, table, org, liveManifest, &live)
}

func TestBodyThatFitsNoItemIsRefused(t *testing.T) {
	table, org := dynamotest.NewTable(t), value.NewID()
	largest := index.StoredManifest{Version: 1, Body: make([]byte, index.MaxBody)}
	putManifest(t, table, org, largest)
	checkManifest(t, table, org, liveManifest, &largest)
	if done, err := table.PutChunk(t.Context(), org, list, index.StoredChunk{Number: 1, ContentID: 1, Body: make([]byte, index.MaxBody+1)}, 0); done || err == nil {
		t.Errorf("a chunk of one byte more: %t, %v", done, err)
	}
	larger := index.StoredManifest{Version: 2, Body: make([]byte, index.MaxBody+1)}
	if done, err := table.PutManifest(t.Context(), org, list, liveManifest, larger); done || err == nil {
		t.Errorf("a body of %d bytes: %t, %v", len(larger.Body), done, err)
	}
}
