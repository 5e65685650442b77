package commerce

import (
	"bytes"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/lists/columnar"
)

func TestNumbersOfFieldsCompareAsNumbers(t *testing.T) {
	for _, row := range []struct {
		name string
		same []string
	}{
		{"one and a half", []string{"1.5", "1.50", "15e-1", "0.15E+1", "150000e-5"}},
		{"its negative", []string{"-1.5", "-15e-1"}},
		{"fifteen", []string{"15", "1.5e1", "15.000"}},
		{"nothing", []string{"0", "-0", "0.00", "0e99", "1e-999999999"}},
		{"more digits than a double has", []string{"12345678901234567890", "1234567890123456789e1"}},
		{"the next one", []string{"12345678901234567891"}},
		{"as large as a double", []string{"1e308", "10e307"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			want, err := decimal(row.same[0])
			for _, text := range row.same {
				if got, err := decimal(text); err != nil || got != want {
					t.Errorf("%s is %q, %v; want %q", text, got, err, want)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for _, text := range []string{"", "x", "01", "+1", "1.", ".5", "1e", "0x1", "NaN", "1 2", "1e309", strings.Repeat("1", 256)} {
		if got, err := decimal(text); err == nil {
			t.Errorf("%q is %q, want an error", text, got)
		}
	}
}

func TestNoValueMakesTheTokenOfAnotherField(t *testing.T) {
	fields := Fields{Fields: []Field{{KindProduct, "a", FieldText, 1}, {KindProduct, "A", FieldText, 11}, {KindOrder, "a", FieldText, 2}}}
	got, err := fields.tokens(KindProduct, []byte(`{"a":"x=11","A":"=1","b":"x","c":null}`))
	if want := "1 x=11=1 11 =1=11"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if got, err := fields.tokens(KindProduct, nil); got != nil || err != nil {
		t.Errorf("of a record without attributes: %q, %v; want none", got, err)
	}
	if got, err := fields.tokens(KindCustomer, []byte(`{"a":"x"}`)); got != nil || err != nil {
		t.Errorf("%q, %v; want none", got, err)
	}
}

func TestAFieldKeepsItsNumberUntilItIsDeclaredAnew(t *testing.T) {
	declare := func(f Fields, at int64, wanted ...Field) Fields {
		next, _ := f.Declare(wanted, testNow+value.Time(at))
		return next
	}
	text, number := Field{Kind: KindProduct, Key: "a", Type: FieldText}, Field{Kind: KindProduct, Key: "a", Type: FieldNumber}
	other := Field{Kind: KindProduct, Key: "b", Type: FieldText}
	one := declare(Fields{}, 0, text)
	two := declare(one, 1000, other, text)
	three := declare(two, 2000, other)
	four := declare(three, 3000, other, text)
	five := declare(four, 4000, other, number)
	for _, row := range []struct {
		name                  string
		fields                Fields
		version               uint64
		newest, before, first int
	}{
		{"the first", one, 1, 1, 0, 1},
		{"one more, before it", two, 2, 2, 1, 2},
		{"one less", three, 3, 2, 1, 2},
		{"it again", four, 4, 3, 2, 2},
		{"of another type", five, 5, 4, 3, 2},
	} {
		f := row.fields
		if f.Version != row.version || f.Newest(KindProduct) != row.newest || f.Before != row.before || f.Fields[0].Number != row.first {
			t.Errorf("%s: %+v", row.name, f)
		}
	}
	if same := declare(five, 9000, other, number); same.Version != five.Version || same.ChangedAt != five.ChangedAt {
		t.Errorf("the same again: %+v, want %+v", same, five)
	}
	if before, then := five.Known(five.KnownAt()-1), five.Known(five.KnownAt()); before != 3 || then != 4 {
		t.Errorf("%d is known, then %d; want 3, then 4", before, then)
	}
}

func TestDocumentsCompareByTheFieldsThatTheirListHas(t *testing.T) {
	document := func(name string, tokens ...string) columnar.Document {
		s := KindProduct.known().list.Schema
		return s.Build(value.ID{1}, 0).Text(s.Col("name"), name).Text(s.Col(columnOwn), tokens...).Document(1, 1)
	}
	fields := Fields{Fields: []Field{{KindProduct, "b", FieldText, 12}, {KindProduct, "a", FieldText, 2}, {KindProduct, "new", FieldText, 13}, {KindOrder, "a", FieldText, 3}}}
	indexed := document("cup", "12", "x=12", "2", "y=2", "1", "was=1", "3")
	for name, c := range map[string]struct {
		document columnar.Document
		same     bool
	}{
		"in another order, without one that was taken away": {document("cup", "2", "y=2", "12", "x=12"), true},
		"with one that is not built":                        {document("cup", "13", "z=13", "12", "x=12", "2", "y=2"), true},
		"with another value":                                {document("cup", "2", "z=2", "12", "x=12"), false},
		"without a value":                                   {document("cup", "12", "x=12", "2"), false},
		"with another name":                                 {document("mug", "12", "x=12", "2", "y=2"), false},
		"without any":                                       {document("cup"), false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := fields.Comparable(KindProduct, &indexed, 12), fields.Comparable(KindProduct, &c.document, 12)
			if same := bytes.Equal(columnar.AppendDocument(nil, &a), columnar.AppendDocument(nil, &b)); same != c.same {
				t.Errorf("same: %t, want %t", same, c.same)
			}
		})
	}
}
