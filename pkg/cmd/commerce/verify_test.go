package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
)

// verify runs the command on all organizations, calling meanwhile instead of
// waiting, and returns what it prints and its exit code.
func (s *tableHarness) verify(t *testing.T, meanwhile func(), args ...string) (stdout string, code int) {
	t.Helper()
	cmd := verifyCommand(ops.Verifier{Waits: []time.Duration{time.Hour, time.Hour}, Pause: func(context.Context, time.Duration) error {
		meanwhile()
		return nil
	}})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--data", s.data}, args...))
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintf(&out, "commerce: %v\n", err)
	}
	return out.String(), exitCode(err)
}

func nothing() {}

func TestVerifyListsWhatIndexAndTableDoNotAgreeOn(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	a, b := twoOrganizations()
	s.store(t, a, 3)
	gone := s.store(t, b, 1)[0]
	s.reindex(t)
	for range 2 {
		if got, code := s.verify(t, nothing); code != 0 || got != "no differences in 7 lists of 2 organizations\n" {
			t.Errorf("after reindex: code %d, %q", code, got)
		}
	}
	missing := s.store(t, a, 2)
	s.lose(t, gone)
	slices.SortFunc(missing, func(a, b value.ID) int { return bytes.Compare(a[:], b[:]) })
	got, code := s.verify(t, nothing)
	lines := strings.Split(got, "\n")
	want := []string{
		fmt.Sprintf("%s products %s: in the table at revision ", a, missing[0]),
		fmt.Sprintf("%s products %s: in the table at revision ", a, missing[1]),
		fmt.Sprintf("%s products %s: in the index at revision ", b, gone),
		"commerce: 3 differences in 7 lists of 2 organizations",
		"",
	}
	if code != 1 || !slices.EqualFunc(lines, want, strings.HasPrefix) {
		t.Errorf("code %d, want 1; lines (-want +got):\n%s", code, cmp.Diff(want, lines))
	}
	got, code = s.verify(t, nothing, "--json")
	object, _, _ := strings.Cut(got, "\n")
	var result struct {
		Organizations []value.ID
		Lists         []string
		Differences   []struct {
			OrganizationID, ID value.ID
			List, Message      string
			Index, Table       int64
		}
	}
	if err := json.Unmarshal([]byte(object), &result, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("--json printed %s: %v", got, err)
	}
	if n := len(result.Differences); code != 1 || len(result.Organizations) != 2 || len(result.Lists) != 7 || n != 3 {
		t.Fatalf("--json: code %d, %s", code, got)
	}
	if d := result.Differences[2]; d.OrganizationID != b || d.ID != gone || d.List != "products" || d.Table != 0 || d.Index == 0 || !strings.HasPrefix(lines[2], fmt.Sprint(b, " products ", d.Message)) {
		t.Errorf("the last difference as JSON: %+v; as text: %s", d, lines[2])
	}
	if got, code := s.verify(t, nothing, "--organization", b.String(), "--list", "orders"); code != 0 {
		t.Errorf("another list: code %d, %q", code, got)
	}
	s.reindex(t, "--list", "products")
	if got, code := s.verify(t, nothing); code != 0 {
		t.Errorf("after reindex of the list: code %d, %q", code, got)
	}
}

func TestVerifyDoesNotCountWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	org := value.NewID()
	s.store(t, org, 3)
	looks := 0
	got, code := s.verify(t, func() {
		if looks++; looks == 2 {
			s.reindex(t)
		}
	})
	if code != 0 || looks != 2 {
		t.Errorf("code %d after %d waits, want 0 after 2: %q", code, looks, got)
	}
}

func TestVerifyThatCannotBeMadeIsNoDifference(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	away := t.TempDir()
	if err := runner.WriteInfo(away, &runner.Info{DynamoDBEndpoint: "http://127.0.0.1:1", TableName: "commerce"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--data " + away, "connection refused"},
		{"--organization " + testOrganization + " --data " + away, "connection refused"},
		{"--list nothing", "--list nothing: must be one of products, "},
		{"--organization x", "--organization "},
		{"--data " + t.TempDir(), "no local service runs here"},
	} {
		if got, code := s.verify(t, nothing, strings.Fields(c.args)...); code != 2 || !strings.Contains(got, c.want) {
			t.Errorf("%s: code %d, %q; want 2 and %q", c.args, code, got, c.want)
		}
	}
}

func TestADamagedIndexIsToldAndMended(t *testing.T) {
	t.Parallel()
	s := newTableHarness(t)
	org := value.NewID()
	s.store(t, org, 5)
	s.reindex(t)
	for item, damaged := range map[string]int{"MANIFEST": len(s.indexed(t, org)), "CHUNK": 1} {
		if s.damage(t, item) == 0 {
			t.Fatalf("the index has no %s", item)
		}
		want := fmt.Sprintf("%s products cannot be read: ", org)
		got, code := s.verify(t, nothing)
		if lines := strings.Count(got, " cannot be read: "); code != 1 || !strings.HasPrefix(got, want) || lines != damaged {
			t.Errorf("%s damaged: code %d, %d lines; want 1, %d lines and first %q:\n%s", item, code, lines, damaged, want, got)
		}
		s.reindex(t)
		if got, code := s.verify(t, nothing); code != 0 {
			t.Errorf("%s damaged, then reindex: code %d, %q", item, code, got)
		}
	}
}

func TestAListIsTheSameAfterItsServiceWasReindexedUnderIt(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	const products = 150
	var records []string
	for i := range products {
		records = append(records, fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"name":"Tea %d"}}`, value.NewID(), i))
	}
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, s.OrganizationID, strings.Join(records, ",")))
	await(t, "the products", func() bool { return s.total(t, "/api/products") == products })
	before := s.all(t, "/api/products")
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &s.DynamoDBEndpoint, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	all, err := dynamo.New(client, s.TableName, time.Now).Organizations(t.Context())
	if err != nil || !slices.Contains(all, value.MustID(s.OrganizationID)) {
		t.Errorf("verify of all organizations would take %v, %v; want %s among them", all, err, s.OrganizationID)
	}
	if got := s.commerce(t, "verify", "--organization", s.OrganizationID); got != "no differences in 7 lists of 1 organization\n" {
		t.Errorf("verify: got %q", got)
	}
	if got := s.commerce(t, "reindex", "--organization", s.OrganizationID); got != "reindexed 7 lists of 1 organization\n" {
		t.Errorf("reindex: got %q", got)
	}
	if diff := cmp.Diff(before, s.all(t, "/api/products")); diff != "" {
		t.Errorf("the list changed (-before +after):\n%s", diff)
	}
	if got := s.commerce(t, "verify", "--organization", s.OrganizationID); got != "no differences in 7 lists of 1 organization\n" {
		t.Errorf("verify after reindex: got %q", got)
	}
}
