package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/webhook/pattern"
)

func compile(t testing.TB, text string) *pattern.Pattern {
	t.Helper()
	p, err := pattern.Compile([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

func parse(t testing.TB, text string) *pattern.Document {
	t.Helper()
	d, err := pattern.ParseDocument([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestPatternsSelectAsTheLanguageSays(t *testing.T) {
	const document = `{"status":"PAID","total":12.50,"note":null,"paid":true,"tags":["Gift","new"],"none":[],"empty":"","big":99999999999.9999,
		"items":[{"sku":"A-1","quantity":2,"attributes":{"size":["S","M"]}},{"sku":"B-2","quantity":0.0001,"coupon":"X"}],"shop":{"city":"Köln*\\"}}`
	d := parse(t, document)
	for _, test := range []struct {
		pattern  string
		mismatch string // "": it matches
	}{
		{`{"status":["PAID"]}`, ""},
		{`{"status":["paid","OPEN"]}`, "status"},
		{`{"status":["OPEN","PAID"],"total":[12.5]}`, ""},
		{`{"total":[12.5]}`, ""},
		{`{"total":[1.25e1]}`, ""},
		{`{"total":["12.5"]}`, "total"},
		{`{"total":[12.5001]}`, "total"},
		{`{"big":[99999999999.9999]}`, ""},
		{`{"big":[99999999999.9998]}`, "big"},
		{`{"big":[{"numeric":[">",99999999999.9998]}]}`, ""},
		{`{"total":[{"numeric":[">",12,"<=",12.5]}]}`, ""},
		{`{"total":[{"numeric":["<",12.5]}]}`, "total"},
		{`{"total":[{"numeric":["=",125e-1]}]}`, ""},
		{`{"total":[{"numeric":[">=",-1e3]}]}`, ""},
		{`{"status":[{"numeric":[">",0]}]}`, "status"},
		{`{"note":[null]}`, ""},
		{`{"note":[{"exists":true}]}`, ""},
		{`{"note":[""]}`, "note"},
		{`{"empty":[""]}`, ""},
		{`{"empty":[null]}`, "empty"},
		{`{"absent":[null]}`, "absent"},
		{`{"absent":[{"exists":false}]}`, ""},
		{`{"absent":[{"exists":true}]}`, "absent"},
		{`{"absent":[{"anything-but":"x"}]}`, "absent"},
		{`{"note":[{"anything-but":"x"}]}`, ""},
		{`{"paid":[true]}`, ""},
		{`{"paid":[false,"true"]}`, "paid"},
		{`{"tags":["new"]}`, ""},
		{`{"tags":["gift"]}`, "tags"},
		{`{"tags":[{"equals-ignore-case":"gIFT"}]}`, ""},
		{`{"tags":[{"anything-but":["Gift","new"]}]}`, "tags"},
		{`{"tags":[{"anything-but":"Gift"}]}`, ""},
		{`{"none":[{"exists":false}]}`, ""},
		{`{"none":[{"exists":true}]}`, "none"},
		{`{"shop":[{"exists":true}]}`, "shop"},
		{`{"shop":{"city":[{"prefix":"Köln"}]}}`, ""},
		{`{"shop":{"city":[{"prefix":{"equals-ignore-case":"KÖLN"}}]}}`, ""},
		{`{"shop":{"city":[{"suffix":"\\"}]}}`, ""},
		{`{"shop":{"city":[{"wildcard":"K*n\\*\\\\"}]}}`, ""},
		{`{"shop":{"city":[{"wildcard":"K*x"}]}}`, "shop.city"},
		{`{"status":[{"wildcard":"P*D"}]}`, ""},
		{`{"status":[{"wildcard":"PAI*AID"}]}`, "status"},
		{`{"status":[{"suffix":{"equals-ignore-case":"id"}}]}`, ""},
		{`{"status":[{"anything-but":{"prefix":["PA","X"]}}]}`, "status"},
		{`{"status":[{"anything-but":{"wildcard":"*X*"}}]}`, ""},
		{`{"total":[{"anything-but":[12.5,1]}]}`, "total"},
		{`{"total":[{"anything-but":12.51}]}`, ""},
		{`{"items":{"sku":["A-1"],"quantity":[{"numeric":[">",1]}]}}`, ""},
		{`{"items":{"sku":["B-2"],"quantity":[{"numeric":[">",1]}]}}`, "items"},
		{`{"items":{"coupon":[{"exists":false}]}}`, ""},
		{`{"items":{"coupon":[{"exists":false}],"sku":["B-2"]}}`, "items"},
		{`{"items":{"attributes":{"size":["M"]}}}`, ""},
		{`{"absent":{"deep":{"er":[{"exists":false}]}}}`, ""},
		{`{"absent":{"deep":{"er":["x"]}}}`, "absent.deep.er"},
		{`{"none":{"a":[{"exists":false}]}}`, ""},
		{`{"tags":{"a":["x"]}}`, "tags.a"},
		{`{"$or":[{"status":["OPEN"]},{"total":[12.5]}]}`, ""},
		{`{"$or":[{"status":["OPEN"]},{"total":[1]}]}`, "$or"},
		{`{"status":["PAID"],"$or":[{"total":[1]},{"paid":[true],"$or":[{"tags":["x"]},{"tags":["new"]}]}]}`, ""},
		{`{"status":["PAID"],"$or":[{"status":["OPEN"]},{"total":[1]}]}`, "$or"},
		{`{"shop.city":[{"prefix":"K"}]}`, "shop.city"},
		{`{"shop":{"$or":[{"city":["x"]},{"city":["y"]}]}}`, "shop.$or"},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			p := compile(t, test.pattern)
			if got := p.Mismatch(d); got != test.mismatch {
				t.Errorf("mismatch %q, want %q", got, test.mismatch)
			}
		})
	}
}

func TestBadPatternsAreRefusedWhereTheyAreWrong(t *testing.T) {
	for _, test := range []struct{ pattern, at, reason string }{
		{``, "", "must be valid JSON: EOF"},
		{`[]`, "", "must be an object"},
		{`{}`, "", "must not be empty"},
		{`{"a":["x"]}{}`, "", "must be one JSON object"},
		{`{"":["x"]}`, "", "must name its fields"},
		{`{"a":"x"}`, "a", "must be an array of conditions, or an object of fields"},
		{`{"a":[]}`, "a", "must have a condition"},
		{`{"a":{}}`, "a", "must not be empty"},
		{`{"a":[["x"]]}`, "a[0]", "must be a text, a number, true, false, null or an object with an operator"},
		{`{"a":["x",{}]}`, "a[1]", "must have exactly one operator"},
		{`{"a":[{"prefix":"x","suffix":"y"}]}`, "a[0]", "must have exactly one operator"},
		{`{"a":[{"contains":"x"}]}`, "a[0].contains", "is not an operator: use prefix, suffix, equals-ignore-case, wildcard, numeric, anything-but or exists"},
		{`{"a":[{"prefix":1}]}`, "a[0].prefix", "must be a text"},
		{`{"a":[{"prefix":""}]}`, "a[0].prefix", "must not be empty"},
		{`{"a":[{"prefix":{"prefix":"x"}}]}`, "a[0].prefix", "must be a text, or an object with equals-ignore-case"},
		{`{"a":[{"suffix":{}}]}`, "a[0].suffix", "must be a text, or an object with equals-ignore-case"},
		{`{"a":[{"exists":null}]}`, "a[0].exists", "must be true or false"},
		{`{"a":[{"wildcard":"a**b"}]}`, "a[0].wildcard", "must not have two asterisks in a row"},
		{`{"a":[{"wildcard":"a\\b"}]}`, "a[0].wildcard", "must have a backslash only before * or another backslash"},
		{`{"a":[{"numeric":[]}]}`, "a[0].numeric", `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`},
		{`{"a":[{"numeric":["!",1]}]}`, "a[0].numeric", `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`},
		{`{"a":[{"numeric":["<",5,">",1]}]}`, "a[0].numeric", `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`},
		{`{"a":[{"numeric":["=",5,"<",7]}]}`, "a[0].numeric", `must be ["=", number], or one or two bounds, the lower first: [">", 0, "<=", 5]`},
		{`{"a":[{"numeric":[">",5,"<",5.0]}]}`, "a[0].numeric", "must have a lower bound that is less than the upper one"},
		{`{"a":[{"numeric":[">","5"]}]}`, "a[0].numeric[1]", "must be a number"},
		{`{"a":[1e10000]}`, "a[0]", "must be a number of at most 32 characters and 4 digits of exponent"},
		{`{"a":[{"anything-but":true}]}`, "a[0].anything-but", "must be a text, a number, an array of either, or an object with prefix, suffix, equals-ignore-case or wildcard"},
		{`{"a":[{"anything-but":["x",1]}]}`, "a[0].anything-but", "must be all texts or all numbers"},
		{`{"a":[{"anything-but":[]}]}`, "a[0].anything-but", "must not be empty"},
		{`{"a":[{"anything-but":{"prefix":["x",1]}}]}`, "a[0].anything-but.prefix[1]", "must be a text"},
		{`{"a":[{"anything-but":{"numeric":[">",1]}}]}`, "a[0].anything-but.numeric[0]", "is not an operator: use prefix, suffix, equals-ignore-case, wildcard, numeric, anything-but or exists"},
		{`{"$or":[{"a":["x"]}]}`, "$or", "must be an array of at least two patterns"},
		{`{"$or":{"a":["x"]}}`, "$or", "must be an array of at least two patterns"},
		{`{"b":{"$or":[{"a":["x"]},{"a":[]}]}}`, "b.$or[1].a", "must have a condition"},
		{`{"a":["x"],"a":["y"]}`, "", `must be valid JSON: duplicate object member name "a"`},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			_, err := pattern.Compile([]byte(test.pattern))
			var e *pattern.Error
			if !errors.As(err, &e) || e.At != test.at || e.Reason != test.reason {
				t.Errorf("%v, want %q %q", err, test.at, test.reason)
			}
		})
	}
}

// TestBoundsOfPatterns is about the last pattern that is taken and the first
// that is not.
func TestBoundsOfPatterns(t *testing.T) {
	repeat := func(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for _, test := range []struct {
		name  string
		bound int
		make  func(n int) string
	}{
		{"bytes", pattern.MaxBytes, func(n int) string { return `{"a":["` + strings.Repeat("x", n-len(`{"a":[""]}`)) + `"]}` }},
		{"levels", pattern.MaxLevels, func(n int) string { return strings.Repeat(`{"a":`, n) + `["x"]` + strings.Repeat(`}`, n) }},
		{"levels of alternatives", pattern.MaxLevels, func(n int) string {
			return strings.Repeat(`{"$or":[{"b":[1]},`, n-1) + `{"a":["x"]}` + strings.Repeat(`]}`, n-1)
		}},
		{"conditions", pattern.MaxConditions, func(n int) string { return `{"a":[` + repeat(`1`, n) + `]}` }},
		{"excluded values", pattern.MaxConditions, func(n int) string { return `{"a":[{"anything-but":[` + repeat(`"x"`, n) + `]}]}` }},
		{"asterisks", pattern.MaxStars, func(n int) string { return `{"a":[{"wildcard":"` + strings.Repeat("*x", n) + `"}]}` }},
		{"characters of a number", pattern.MaxNumber, func(n int) string { return `{"a":[` + strings.Repeat("9", n) + `]}` }},
		{"digits of an exponent", 4, func(n int) string { return `{"a":[1e-` + strings.Repeat("9", n) + `]}` }},
	} {
		t.Run(test.name, func(t *testing.T) {
			compile(t, test.make(test.bound))
			if _, err := pattern.Compile([]byte(test.make(test.bound + 1))); err == nil {
				t.Errorf("%s is taken", test.make(test.bound+1))
			}
		})
	}
}

func TestConditionsAreListedWithTheirFields(t *testing.T) {
	p := compile(t, `{"object":{"total":[1,{"numeric":[">",2]}],"note":[null,{"exists":true}]},"$or":[{"a":["x"]},{"a":[true,{"anything-but":"x"}]}]}`)
	var got []string
	for _, c := range p.Conditions() {
		got = append(got, fmt.Sprintf("%s %s %q", c.At, strings.Join(c.Path, "/"), byte(c.Kind)))
	}
	want := []string{
		`object.total[0] object/total '0'`, `object.total[1] object/total '0'`, `object.note[0] object/note 'n'`,
		`object.note[1] object/note '\x00'`, `$or[0].a[0] a '"'`, `$or[1].a[0] a 't'`, `$or[1].a[1] a '\x00'`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextsThatAreNoObjectAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "[]", `"a"`, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"\`, `{"a":1`, `{"a":[1`, `{a:1}`, `{"a":1 "b":2}`, `{"a":x}`,
	} {
		if d, err := pattern.ParseDocument([]byte(text)); err == nil {
			t.Errorf("%q is %+v", text, d)
		}
	}
}
