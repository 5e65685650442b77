package columnar_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fold"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func number(n int) [16]byte { return [16]byte{14: byte(n >> 8), 15: byte(n)} }

// numbers returns the ids of hits that number made.
func numbers(hits []columnar.Hit) []int {
	list := []int{}
	for _, h := range hits {
		list = append(list, int(h.ID[14])<<8|int(h.ID[15]))
	}
	return list
}

func TestSearchFindsTokensInsideOneValueOnly(t *testing.T) {
	v := columnar.NewView(everything)
	v.Apply([]columnar.Document{
		everything.Build(number(1), 0).Text(name, "Linen shirt").Text(sku, "LS-1").Text(tags, "red", "wine").Text(ref, "hidden").Document(1, 1),
		everything.Build(number(2), 0).Text(name, "Crème brûlée").Text(tags, "redwine").Text(lastName, "Shirt").Document(1, 1),
	})
	for _, row := range []struct {
		search string
		want   []int
	}{
		{"shirt", []int{1}},
		{"SHIRT ls-1", []int{1}},
		{"en sh", []int{1}},
		{"redwine", []int{2}},
		{"red wine", []int{1, 2}},
		{"dw", []int{2}},
		{"shirtls", nil},
		{"1red", nil},
		{"hidden", nil},
		{"creme", []int{2}},
		{"ÛLÉE", []int{2}},
		{"e", []int{1, 2}},
		{"shirt creme", nil},
		{"", []int{1, 2}},
		{"\u0301", []int{1, 2}},
	} {
		t.Run(row.search, func(t *testing.T) {
			got := numbers(v.Query(columnar.Query{Search: fold.Tokens(row.search), Limit: 10}).Hits)
			if !slices.Equal(got, row.want) {
				t.Errorf("search %q finds %v, want %v", row.search, got, row.want)
			}
		})
	}
}

func TestInComparesAWholeTextWithItsFirstValueOrEach(t *testing.T) {
	doc := everything.Build(number(1), 0).Text(sku, "LS-1", "LS-2").Text(ref, "").Text(keys, "1", "1=Red", "2=x1").Document(1, 1)
	v := columnar.NewView(everything)
	v.Apply([]columnar.Document{doc})
	for _, row := range []struct {
		name   string
		filter columnar.Filter
		want   bool
	}{
		{"first value", columnar.In(sku, "x", "ls-1"), true},
		{"second value", columnar.In(sku, "ls-2"), false},
		{"a part", columnar.In(sku, "ls"), false},
		{"no value asked for", columnar.In(sku), false},
		{"empty value", columnar.In(ref, ""), true},
		{"empty value is not null", columnar.Null(ref), false},
		{"not of a part", columnar.Not(columnar.In(sku, "ls")), true},
		{"each: first value", columnar.In(keys, "1"), true},
		{"each: second value", columnar.In(keys, "x", "1=rED"), true},
		{"each: last value", columnar.In(keys, "2=x1"), true},
		{"each: an end", columnar.In(keys, "x1"), false},
		{"each: a start", columnar.In(keys, "1="), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := columnar.Query{Filter: row.filter}
			if got := v.Query(q).Total == 1; got != row.want {
				t.Errorf("the view says %v, want %v", got, row.want)
			}
			if got := columnar.Match(everything, q, doc); got != row.want {
				t.Errorf("Match says %v, want %v", got, row.want)
			}
		})
	}
}

func TestTextIsOrderedByCodePointsAndNullsAreLastBothWays(t *testing.T) {
	v := columnar.NewView(everything)
	names := []string{"b", "", "ab", "a", "É", "a\x00", "日本", "z", "𝔘𐀀", "a"}
	docs := []columnar.Document{everything.Build(number(90), 0).Document(1, 1), everything.Build(number(91), 0).Document(1, 1)}
	for i, n := range names {
		docs = append(docs, everything.Build(number(i), 0).Text(name, n).Document(1, 1))
	}
	v.Apply(docs)
	up := v.Query(columnar.Query{OrderBy: name, Limit: 100})
	if got, want := numbers(up.Hits), []int{1, 3, 9, 5, 2, 0, 4, 8, 7, 6, 90, 91}; !slices.Equal(got, want) {
		t.Errorf("ascending: %v, want %v", got, want)
	}
	down := v.Query(columnar.Query{OrderBy: name, Desc: true, Limit: 100})
	if got, want := numbers(down.Hits), []int{6, 7, 8, 4, 0, 2, 5, 9, 3, 1, 91, 90}; !slices.Equal(got, want) {
		t.Errorf("descending: %v, want %v", got, want)
	}
}

func TestDeletedDocumentsStayAway(t *testing.T) {
	v := columnar.NewView(everything)
	doc := func(revision, visible int64) columnar.Document {
		return everything.Build(number(1), 0).Number(price, revision).Document(revision, visible)
	}
	gone := func(revision int64) columnar.Document { return everything.Tombstone(number(1), 0, revision, 1) }
	for i, row := range []struct {
		doc  columnar.Document
		want []columnar.Hit
	}{
		{doc(5, 50), []columnar.Hit{{ID: number(1), Revision: 5, Visible: 50}}},
		{doc(4, 99), []columnar.Hit{{ID: number(1), Revision: 5, Visible: 50}}},
		{doc(5, 70), []columnar.Hit{{ID: number(1), Revision: 5, Visible: 70}}},
		{doc(5, 60), []columnar.Hit{{ID: number(1), Revision: 5, Visible: 70}}},
		{gone(4), []columnar.Hit{{ID: number(1), Revision: 5, Visible: 70}}},
		{gone(7), []columnar.Hit{}},
		{doc(6, 80), []columnar.Hit{}},
		{doc(7, 80), []columnar.Hit{}},
		{doc(8, 90), []columnar.Hit{{ID: number(1), Revision: 8, Visible: 90}}},
		{gone(8), []columnar.Hit{}},
	} {
		t.Run(fmt.Sprint(row.doc), func(t *testing.T) {
			v.Apply([]columnar.Document{row.doc})
			if got := v.Query(columnar.Query{OrderBy: price, Limit: 10}); !slices.Equal(got.Hits, row.want) || v.Len() != len(row.want) {
				t.Fatalf("step %d: hits %v of %d, want %v", i, got.Hits, v.Len(), row.want)
			}
		})
	}
}

func TestPagesPastTheEndAreEmptyWithTheTrueTotal(t *testing.T) {
	v := columnar.NewView(everything)
	v.Apply([]columnar.Document{
		everything.Build(number(1), 0).Bool(active, true).Document(1, 1),
		everything.Build(number(2), 0).Bool(active, true).Document(1, 1),
	})
	for _, filter := range []columnar.Filter{{}, columnar.Is(active, true)} {
		for _, q := range []columnar.Query{
			{Offset: 2, Limit: 20},
			{Offset: math.MaxInt, Limit: math.MaxInt},
			{Limit: 0},
			{Offset: 1, Limit: -1},
			{AfterID: ptr(number(2)), Limit: 20},
			{AfterID: ptr(number(0)), Limit: 0},
		} {
			q.Filter = filter
			if got := v.Query(q); got.Total != 2 || got.Hits == nil || len(got.Hits) != 0 {
				t.Errorf("%+v: %+v, want an empty page of 2", q, got)
			}
		}
	}
}

// The first searches of a view fill its caches, all at once.
func TestFirstSearchesBesideOneAnotherFindTheSame(t *testing.T) {
	const docs = 3*4096 + 100
	v := columnar.NewView(everything)
	batch := make([]columnar.Document, docs)
	for i := range batch {
		batch[i] = everything.Build(number(i), 0).Text(name, fmt.Sprintf("name %05d", i)).Document(1, 1)
	}
	v.Apply(batch)
	want := map[string]int{}
	for _, token := range []string{"0", "name", "09", "name 0", "1234", "99999"} {
		want[token] = 0
		for i := range docs {
			if strings.Contains(fmt.Sprintf("name %05d", i), token) {
				want[token]++
			}
		}
	}
	var readers sync.WaitGroup
	for range 3 {
		for token, n := range want {
			readers.Go(func() {
				if got := v.Query(columnar.Query{Search: []string{token, "n"}}).Total; got != n {
					t.Errorf("%q is in %d documents, want %d", token, got, n)
				}
			})
		}
	}
	readers.Wait()
}

// The second query finds the value's rows in the cache, of the row groups that are closed.
func TestAFilterOfEachValueFollowsChangesWhenRepeated(t *testing.T) {
	const docs = 2*4096 + 700
	v := columnar.NewView(everything)
	batch := make([]columnar.Document, docs)
	for i := range batch {
		batch[i] = everything.Build(number(i), 0).Text(keys, "1", fmt.Sprintf("1=%d", i%7)).Document(1, 1)
	}
	v.Apply(batch)
	total := func() int { return v.Query(columnar.Query{Filter: columnar.In(keys, "1=3", "1=33")}).Total }
	first := total()
	if again := total(); first != docs/7 || again != first {
		t.Errorf("%d documents, and %d when asked again; want %d", first, again, docs/7)
	}
	v.Apply([]columnar.Document{everything.Tombstone(number(3), 0, 2, 2), everything.Build(number(4), 0).Text(keys, "2=1", "1=3").Document(2, 2)})
	v.Apply([]columnar.Document{everything.Build(number(10), 0).Text(keys, "1=33").Document(2, 2), everything.Build(number(17), 0).Document(2, 2)})
	if got := total(); got != first-1 {
		t.Errorf("%d documents after one got the value, one kept one and two lost it; want %d", got, first-1)
	}
}

func TestSmallViewsAreSmall(t *testing.T) {
	v := columnar.NewView(products)
	for revision := range int64(3000) {
		v.Apply([]columnar.Document{product(int(revision%10), revision)})
	}
	if got := v.Bytes(); v.Len() != 10 || got > 200_000 {
		t.Errorf("%d products, changed 3,000 times, take %d bytes, want at most 200,000", v.Len(), got)
	}
}
