package columnar_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func TestMustSchemaRefusesWhatDoesNotFit(t *testing.T) {
	many := make([]columnar.Column, 65)
	for i := range many {
		many[i] = columnar.Column{Name: strings.Repeat("x", i+1), Type: columnar.Bool}
	}
	for _, row := range []struct {
		name    string
		columns []columnar.Column
		want    string
	}{
		{"", nil, "needs a name"},
		{"k", many, "65 columns"},
		{"k", []columnar.Column{{Type: columnar.Bool}}, "empty or used twice"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Bool}, {Name: "a", Type: columnar.Bool}}, "empty or used twice"},
		{"k", []columnar.Column{{Name: "a"}}, "unknown type"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Text + 1}}, "unknown type"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Keyword, Search: true}}, "for Text"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Number, Match: true}}, "for Text"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Text, Each: true}}, "for Match"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Text, Fold: true}}, "for Keyword"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Keyword, Sort: true}}, "Sort is for"},
		{"k", []columnar.Column{{Name: "a", Type: columnar.Bool, Sort: true}}, "Sort is for"},
	} {
		t.Run(row.name, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, row.want) {
					t.Errorf("MustSchema(%q, %v) panics with %v, want one with %q", row.name, row.columns, said, row.want)
				}
			}()
			columnar.MustSchema(row.name, row.columns...)
		})
	}
	if s := columnar.MustSchema("k", many[:64]...); s.Name() != "k" || s.Col(many[63].Name) != 64 {
		t.Errorf("64 columns: column %d is the last, want 64", s.Col(many[63].Name))
	}
}

// What only a mistake in the program can ask for panics and says what is wrong.
func TestMisusePanics(t *testing.T) {
	other := columnar.MustSchema("other", columnar.Column{Name: "a", Type: columnar.Bool})
	view := columnar.NewView(everything)
	ask := func(f columnar.Filter) func() { return func() { view.Query(columnar.Query{Filter: f}) } }
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"schema", func() { columnar.MustSchema("") }, "needs a name"},
		{"column name", func() { everything.Col("nothing") }, `no column "nothing"`},
		{"column number", ask(columnar.Is(99, true)), "no column 99"},
		{"document of another schema", func() { view.Apply([]columnar.Document{other.Tombstone([16]byte{}, 0, 1, 1)}) }, "not of schema everything"},
		{"document of none", func() { view.Apply(make([]columnar.Document, 1)) }, "not of schema everything"},
		{"In on a Number", ask(columnar.In(price, "1")), "not for column price"},
		{"In on a Text without Match", ask(columnar.In(name, "1")), "not for column name"},
		{"Null on a Text without Match", ask(columnar.Null(tags)), "not for column tags"},
		{"Is on a Keyword", ask(columnar.Is(state, true)), "not for column state"},
		{"Between on a Text", ask(columnar.Not(columnar.Any(columnar.Between(sku, 1, 2)))), "not for column sku"},
		{"order by a Keyword", func() { view.Query(columnar.Query{OrderBy: state}) }, "not for column state"},
		{"search without text", func() { columnar.NewCoreView(everything).Query(columnar.Query{Search: []string{"a"}}) }, "keeps no text"},
		{"order by a Text without text", func() { columnar.NewCoreView(everything).Query(columnar.Query{OrderBy: name}) }, "keeps no text"},
		{"filter of a Text without text", func() {
			columnar.NewCoreView(everything).Query(columnar.Query{Filter: columnar.Not(columnar.Null(ref))})
		}, "keeps no text"},
		{"Match", func() {
			columnar.Match(everything, columnar.Query{Filter: columnar.Is(name, true)}, everything.Build([16]byte{}, 0).Document(1, 1))
		}, "not for column name"},
		{"Builder.Keyword", func() { everything.Build([16]byte{}, 0).Keyword(name, "x") }, "not for column name"},
		{"Document.Time", func() { d := everything.Build([16]byte{}, 0).Document(1, 1); d.Time(price) }, "not for column price"},
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
