package dynamo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/dynamo/dynamotest"
	"github.com/commerce-integration/service/pkg/value"
)

func TestOrganizationsAreThoseThatAnythingIsKeptOf(t *testing.T) {
	table := dynamotest.NewTable(t)
	if got, err := table.Organizations(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("of an empty table: got %v, %v", got, err)
	}
	developers, indexed := value.NewID(), value.NewID()
	dynamotest.Application(t, table, developers)
	// More than a page of one segment.
	for range 30 {
		appendTail(t, table, indexed, strings.Repeat("x", 60<<10))
	}
	want := []value.ID{developers, indexed}
	for range 40 {
		org := value.NewID()
		appendTail(t, table, org, "x")
		want = append(want, org)
	}
	slices.SortFunc(want, func(a, b value.ID) int { return slices.Compare(a[:], b[:]) })
	got, err := table.Organizations(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, organizations (-want +got):\n%s", err, diff)
	}
}
