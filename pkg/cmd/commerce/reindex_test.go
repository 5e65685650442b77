package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/index"
	"github.com/commerce-integration/service/pkg/index/compactor"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
)

// tableHarness is a table that nothing indexes but reindex, with a data folder that
// points at it.
type tableHarness struct {
	table  *dynamo.Table
	client *dynamodb.Client
	data   string
	info   runner.Info
}

func newTableHarness(t *testing.T) *tableHarness {
	t.Helper()
	client, name := dynamotest.Client(t)
	s := &tableHarness{table: dynamo.New(client, name, time.Now), client: client, data: t.TempDir()}
	s.info = runner.Info{OrganizationID: testOrganization, DynamoDBEndpoint: *client.Options().BaseEndpoint, TableName: name}
	if err := runner.WriteInfo(s.data, &s.info); err != nil {
		t.Fatal(err)
	}
	return s
}

// store puts products of the organization into the table and registers it, as
// the indexer does before it indexes anything of it.
func (s *tableHarness) store(t *testing.T, org value.ID, n int) (ids []value.ID) {
	t.Helper()
	if err := s.table.RegisterOrganization(t.Context(), org); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		body := fmt.Sprintf(`{"organizationId":%q,"kind":"product","op":"put","record":{"id":%q,"name":"Tea %d"}}`, org, value.NewID(), i)
		changes, refusals := commerce.ParseMessage([]byte(body))
		if len(refusals) > 0 {
			t.Fatalf("%s: %+v", body, refusals)
		}
		stored, err := commerce.Apply(nil, changes[0], value.TimeOf(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.table.PutRecord(t.Context(), nil, stored); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, stored.ID)
	}
	return ids
}

// items returns everything that the table holds.
func (s *tableHarness) items(t *testing.T) []map[string]types.AttributeValue {
	t.Helper()
	out, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &s.info.TableName})
	if err != nil {
		t.Fatal(err)
	}
	return out.Items
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// lose removes a product as nothing of the service does, without a trace.
func (s *tableHarness) lose(t *testing.T, id value.ID) {
	t.Helper()
	for _, it := range s.items(t) {
		if text(it["SK"]) == id.String() {
			key := map[string]types.AttributeValue{"PK": it["PK"], "SK": it["SK"]}
			if _, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.info.TableName, Key: key}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no product %s", id)
}

// damage alters a byte of every item whose sort key begins so, and returns how many
// there are.
func (s *tableHarness) damage(t *testing.T, sk string) (n int) {
	t.Helper()
	for _, it := range s.items(t) {
		body, ok := it["body"].(*types.AttributeValueMemberB)
		if !strings.HasPrefix(text(it["SK"]), sk) || !ok || len(body.Value) == 0 {
			continue
		}
		body.Value[len(body.Value)/2] ^= 0x40
		if _, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.info.TableName, Item: it}); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// indexed tells which lists of an organization have an index.
func (s *tableHarness) indexed(t *testing.T, org value.ID) (names []string) {
	t.Helper()
	for _, list := range index.NewLists(s.table, dynamo.Shards).All() {
		m, err := s.table.Manifest(t.Context(), org, list.Name, index.Key{Org: org, List: list}.Layout().Live())
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			names = append(names, list.Name)
		}
	}
	return names
}

// reindex runs the command and returns what it says.
func (s *tableHarness) reindex(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := runCommand(t.Context(), append([]string{"reindex", "--data", s.data}, args...)...)
	if err != nil {
		t.Fatalf("reindex %q: %v", args, err)
	}
	return stdout, stderr
}

// twoOrganizations returns them in the order of their ids.
func twoOrganizations() (a, b value.ID) {
	ids := []value.ID{value.NewRandomID(), value.NewRandomID()}
	slices.SortFunc(ids, func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids[0], ids[1]
}

func TestReindexMakesEveryListOfEveryOrganizationOrWhatIsNamed(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	a, b := twoOrganizations()
	s.store(t, a, 3)
	s.store(t, b, 3)
	stdout, stderr := s.reindex(t, "--organization", b.String(), "--list", "products")
	if stdout != "reindexed 1 list of 1 organization\n" || stderr != "" {
		t.Errorf("one list: got %q, %q", stdout, stderr)
	}
	if got := fmt.Sprint(s.indexed(t, a), s.indexed(t, b)); got != "[] [products]" {
		t.Errorf("one list: indexed %s, want products of the second organization", got)
	}
	if stdout, _ := s.reindex(t); stdout != "reindexed 7 lists of 2 organizations\n" {
		t.Errorf("everything: got %q", stdout)
	}
	if got := fmt.Sprint(len(s.indexed(t, a)), len(s.indexed(t, b))); got != "7 7" {
		t.Errorf("everything: indexed %s lists, want 7 of each", got)
	}
}

func TestReindexGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	const all = "products categories orders customers invoices deletions webhook-events"
	for name, c := range map[string]struct {
		organization string // of the interrupted run
		age          time.Duration
		want         [2]string // lists that the next run makes
		said         bool
	}{
		"the same command": {"", time.Hour, [2]string{"", strings.Replace(all, "orders ", "", 1)}, true},
		"a day later":      {"", 25 * time.Hour, [2]string{all, all}, false},
		"another command":  {testOrganization, time.Hour, [2]string{all, all}, false},
	} {
		s := newTableHarness(t)
		a, b := twoOrganizations()
		s.store(t, a, 1)
		s.store(t, b, 1)
		lists := &listsTarget{target: target{data: s.data, organization: c.organization}}
		interrupted, err := lists.position(s.info.OrganizationID, time.Now().Add(-c.age))
		if err != nil {
			t.Fatal(err)
		}
		for _, done := range []struct {
			org  value.ID
			list string
		}{{a, "products"}, {b, "orders"}} {
			if err := interrupted.Save(done.org, done.list); err != nil {
				t.Fatal(err)
			}
		}
		_, stderr := s.reindex(t)
		if said := strings.HasPrefix(stderr, "going on at organization "+b.String()); said != c.said {
			t.Errorf("%s: said %q", name, stderr)
		}
		for i, org := range []value.ID{a, b} {
			got := s.indexed(t, org)
			want := strings.Fields(c.want[i])
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: of organization %d made %v, want %v", name, i+1, got, want)
			}
		}
		if c.organization == "" {
			if left, err := filepath.Glob(filepath.Join(s.data, "reindex-*")); len(left) > 0 || err != nil {
				t.Errorf("%s: left %v, %v", name, left, err)
			}
		}
	}
}

func TestReindexRefusesAPositionThatItCannotRead(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	s.store(t, value.NewID(), 1)
	p, err := (&listsTarget{target: target{data: s.data}}).position(s.info.OrganizationID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(p.Checkpoint), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, err := runCommand(t.Context(), "reindex", "--data", s.data)
	if err == nil || !strings.Contains(stderr, "remove the file to start over") {
		t.Errorf("got %q, want a word on what to do", stderr)
	}
}

func TestInterruptedRebuildGoesOnAtTheNextJob(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	org := value.NewID()
	s.store(t, org, 3)
	lists := index.NewLists(s.table, dynamo.Shards)
	m := compactor.New(s.table, lists.All(), time.Now, slog.New(slog.DiscardHandler))
	products := lists.Named("products")
	ctx, interrupt := context.WithCancel(t.Context())
	told := 0
	err := ops.Rebuild(ctx, s.table, m, index.Key{Org: org, List: products}, func(int, int) {
		told++
		interrupt()
	})
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Fatalf("got %v after %d jobs, want the interruption after one", err, told)
	}
	if got := s.indexed(t, org); len(got) != 0 {
		t.Errorf("indexed %v, want nothing yet", got)
	}
	job, err := s.table.TakeJob(t.Context(), org, products.Name, value.TimeOf(time.Now()))
	if err != nil || job == nil {
		t.Fatalf("TakeJob: %v, %v; want the job that nobody has", job, err)
	}
	if _, err := s.table.EndJob(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	if err := ops.Rebuild(t.Context(), s.table, m, index.Key{Org: org, List: products}, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if got := s.indexed(t, org); !slices.Equal(got, []string{"products"}) {
		t.Errorf("indexed %v, want products", got)
	}
	if err := ops.Rebuild(ctx, s.table, m, index.Key{Org: org, List: products}, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the interruption: got %v, want no rebuild begun", err)
	}
}
