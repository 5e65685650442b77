package index_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/index"
)

func TestNewSchemaRefusesWhatDoesNotFit(t *testing.T) {
	many := make([]index.Column, 65)
	for i := range many {
		many[i] = index.Column{Name: strings.Repeat("x", i+1), Type: index.Bool}
	}
	for _, row := range []struct {
		name    string
		columns []index.Column
		want    string
	}{
		{"", nil, "needs a name"},
		{"k", many, "65 columns"},
		{"k", []index.Column{{Type: index.Bool}}, "empty or used twice"},
		{"k", []index.Column{{Name: "a", Type: index.Bool}, {Name: "a", Type: index.Bool}}, "empty or used twice"},
		{"k", []index.Column{{Name: "a"}}, "unknown type"},
		{"k", []index.Column{{Name: "a", Type: index.Text + 1}}, "unknown type"},
		{"k", []index.Column{{Name: "a", Type: index.Keyword, Search: true}}, "for Text"},
		{"k", []index.Column{{Name: "a", Type: index.Number, Match: true}}, "for Text"},
		{"k", []index.Column{{Name: "a", Type: index.Text, Fold: true}}, "for Keyword"},
		{"k", []index.Column{{Name: "a", Type: index.Keyword, Sort: true}}, "Sort is for"},
		{"k", []index.Column{{Name: "a", Type: index.Bool, Sort: true}}, "Sort is for"},
	} {
		if _, err := index.NewSchema(row.name, row.columns...); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("NewSchema(%q, %v) = %v, want an error with %q", row.name, row.columns, err, row.want)
		}
	}
	if s, err := index.NewSchema("k", many[:64]...); err != nil || s.Name() != "k" || s.Col(many[63].Name) != 64 {
		t.Errorf("64 columns: %v, want the last to be column 64", err)
	}
}

// What only a mistake in the program can ask for panics and says what is wrong.
func TestMisusePanics(t *testing.T) {
	other := index.MustSchema("other", index.Column{Name: "a", Type: index.Bool})
	view := index.NewView(everything)
	ask := func(f index.Filter) func() { return func() { view.Query(index.Query{Filter: f}) } }
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"schema", func() { index.MustSchema("") }, "needs a name"},
		{"column name", func() { everything.Col("nothing") }, `no column "nothing"`},
		{"column number", ask(index.Is(99, true)), "no column 99"},
		{"document of another schema", func() { view.Apply([]index.Document{other.Tombstone([16]byte{}, 0, 1, 1)}) }, "not of schema everything"},
		{"document of none", func() { view.Apply(make([]index.Document, 1)) }, "not of schema everything"},
		{"In on a Number", ask(index.In(price, "1")), "not for column price"},
		{"In on a Text without Match", ask(index.In(name, "1")), "not for column name"},
		{"Null on a Text without Match", ask(index.Null(tags)), "not for column tags"},
		{"Is on a Keyword", ask(index.Is(state, true)), "not for column state"},
		{"Between on a Text", ask(index.Not(index.Any(index.Between(sku, 1, 2)))), "not for column sku"},
		{"order by a Keyword", func() { view.Query(index.Query{OrderBy: state}) }, "not for column state"},
		{"Match", func() {
			index.Match(everything, index.Query{Filter: index.Is(name, true)}, everything.Build([16]byte{}, 0).Document(1, 1))
		}, "not for column name"},
		{"Builder.Keyword", func() { everything.Build([16]byte{}, 0).Keyword(name, "x") }, "not for column name"},
		{"Builder.Time", func() { everything.Build([16]byte{}, 0).Time(price, 1) }, "not for column price"},
	} {
		t.Run(row.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, row.want) {
					t.Errorf("panic %q, want one with %q", got, row.want)
				}
			}()
			row.do()
			t.Error("no panic")
		})
	}
}
