package dynamo_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

func TestOrganizationsAreThoseRegisteredInOrder(t *testing.T) {
	table := dynamotest.NewTable(t)
	if got, err := table.Organizations(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("of an empty table: got %v, %v", got, err)
	}
	unregistered := value.NewID()
	servicetest.OnTable(t, table, unregistered)
	appendTail(t, table, unregistered, "x")
	var want []value.ID
	for range 15 {
		org := value.NewRandomID()
		want = append(want, org)
		for range 2 {
			must(t, table.RegisterOrganization(t.Context(), org))
		}
	}
	slices.SortFunc(want, func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) })
	got, err := table.Organizations(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, organizations (-want +got):\n%s", err, diff)
	}
}

// A scan costs what reading the whole table costs: what is to be listed has a
// partition instead. Only what stands in for AWS on a laptop, such as the
// removal of expired items, the fixture of tests, and the two operators' commands
// that no partition serves, erase and reseal, may look at all of them.
func TestNothingScansTheTable(t *testing.T) {
	files := 0
	for _, dir := range []string{"pkg", "functions"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && slices.Contains([]string{"local", "lab", "servicetest"}, entry.Name()) {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if filepath.Base(filepath.Dir(path)) == "dynamo" && entry.Name() == "scan.go" {
				return nil
			}
			files++
			// A batch of statements cannot scan: each names a whole key.
			for _, scan := range []string{"dynamodb.Scan", "NewScanPaginator", "dynamodb.ExecuteStatement", "NewExecuteStatementPaginator"} {
				if bytes.Contains(code, []byte(scan)) {
					t.Errorf("%s has %s", path, scan)
				}
			}
			return nil
		})
		must(t, err)
	}
	if files < 100 {
		t.Errorf("looked at %d files, want all of the service", files)
	}
	template, err := os.ReadFile(filepath.Join("..", "..", "template.yaml"))
	must(t, err)
	for _, verb := range []string{"Insert", "Update"} { // they name a whole key, too
		template = bytes.ReplaceAll(template, []byte("dynamodb:PartiQL"+verb), nil)
	}
	for _, action := range []string{"dynamodb:Scan", "dynamodb:PartiQL", "dynamodb:*"} {
		if bytes.Contains(template, []byte(action)) {
			t.Errorf("template.yaml allows %s", action)
		}
	}
}

// TestAnEntryIsAnnouncedBeforeItIsThere appends by two writers whose clocks
// differ, in turn and at the same time.
func TestAnEntryIsAnnouncedBeforeItIsThere(t *testing.T) {
	client, name := dynamotest.Client(t)
	var mu sync.Mutex
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	clock := func(ahead time.Duration) func() time.Time {
		return func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now.Add(ahead)
		}
	}
	writers := []*dynamo.Table{dynamo.New(client, name, clock(0)), dynamo.New(client, name, clock(-5*time.Minute))}
	org := value.NewID()
	activity := func(org value.ID) value.Time {
		t.Helper()
		until, err := writers[0].Activity(t.Context(), org)
		must(t, err)
		return until
	}
	if got := activity(org); got != 0 {
		t.Errorf("before the first entry: got %s, want nothing", got)
	}
	if _, err := writers[0].AppendTail(t.Context(), org, index.DeliveryListName, fixed([]byte("x"))); err != nil || activity(org) != 0 {
		t.Errorf("a delivery announced an entry, %v", err)
	}
	before := value.Time(0)
	for n := range 12 {
		var group sync.WaitGroup
		for i, w := range writers {
			group.Go(func() {
				at, err := w.AppendTail(t.Context(), org, []string{"products", "orders"}[(n+i)%2], fixed([]byte("x")))
				if until := activity(org); err != nil || until < at.At {
					t.Errorf("an entry of %s: %v, and the activity ends at %s", at.At, err, until)
				}
			})
			if n%2 == 0 {
				group.Wait()
			}
		}
		group.Wait()
		until := activity(org)
		if until < before || until > value.TimeOf(clock(0)().Add(31*time.Second)) {
			t.Errorf("the activity goes from %s to %s", before, until)
		}
		before = until
		mu.Lock()
		now = now.Add(9 * time.Second)
		mu.Unlock()
	}
	if got := activity(value.NewID()); got != 0 {
		t.Errorf("another organization: got %s, want nothing", got)
	}
}
