package eventsource

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestFilterRules(t *testing.T) {
	tests := []struct {
		pattern, value string
		want           bool
	}{
		{`{"a":["x"]}`, `{"a":"x"}`, true},
		{`{"a":["x"]}`, `{"a":"X"}`, false},
		{`{"a":["x","y"]}`, `{"a":"y"}`, true},
		{`{"a":["x"]}`, `{"b":"x"}`, false},
		{`{"a":["x"]}`, `{"a":["z","x"]}`, true},
		{`{"a":["x"],"b":["y"]}`, `{"a":"x","b":"z"}`, false},
		{`{"a":[1]}`, `{"a":1.0}`, true},
		{`{"a":[1]}`, `{"a":"1"}`, false},
		{`{"a":[true]}`, `{"a":true}`, true},
		{`{"a":[null]}`, `{"a":null}`, true},
		{`{"a":[null]}`, `{}`, false},
		{`{"a":[""]}`, `{"a":""}`, true},

		{`{"a":{"b":{"c":["x"]}}}`, `{"a":{"b":{"c":"x"}}}`, true},
		{`{"a":{"b":["x"]}}`, `{"a":"x"}`, false},
		{`{"a":["x"]}`, `{"a":{"b":"x"}}`, false},
		{`{"a":{"b":["x"],"c":["y"]}}`, `{"a":[{"b":"x"},{"b":"x","c":"y"}]}`, true},
		{`{"a":{"b":["x"],"c":["y"]}}`, `{"a":[{"b":"x"},{"c":"y"}]}`, false},

		{`{"dynamodb":{"NewImage":{"t":{"S":["rec","evt"]}}}}`, `{"eventName":"INSERT","dynamodb":{"NewImage":{"t":{"S":"evt"}}}}`, true},
		{`{"dynamodb":{"NewImage":{"t":{"S":["rec","evt"]}}}}`, `{"eventName":"REMOVE","dynamodb":{"OldImage":{"t":{"S":"evt"}}}}`, false},
	}
	for _, test := range tests {
		parsed, err := parseFilter([]string{test.pattern})
		if err != nil {
			t.Errorf("parsing %s: %v", test.pattern, err)
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(test.value), &value); err != nil {
			t.Fatal(err)
		}
		if got := parsed.passes(value); got != test.want {
			t.Errorf("%s on %s: got %v, want %v", test.pattern, test.value, got, test.want)
		}
	}
}

func TestFiltersAreAlternatives(t *testing.T) {
	tests := []struct {
		patterns []string
		want     bool
	}{
		{nil, true},
		{[]string{`{"a":["x"]}`}, false},
		{[]string{`{"a":["x"]}`, `{"a":["y"]}`}, true},
	}
	for _, test := range tests {
		parsed, err := parseFilter(test.patterns)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.passes(map[string]any{"a": "y"}); got != test.want {
			t.Errorf("%v on a = y: got %v, want %v", test.patterns, got, test.want)
		}
	}
}

func TestMalformedFiltersAreRefused(t *testing.T) {
	for _, source := range []string{
		``, `{`, `[]`, `"x"`, `{}`, `{"a":"x"}`, `{"a":1}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":[["x"]]}`, `{"a":[{}]}`,
		`{"a":[{"prefix":"x"}]}`, `{"a":["x",{"exists":true}]}`, `{"$or":[{"a":["x"]},{"b":["y"]}]}`, `{"a":["x"],"a":["y"]}`,
	} {
		if _, err := parseFilter([]string{source}); err == nil || !strings.Contains(err.Error(), source) {
			t.Errorf("parsing %s: got %v, want an error that shows it", source, err)
		}
	}
	if _, err := parseFilter(make([]string, maxFilters+1)); err == nil {
		t.Errorf("%d filters are accepted", maxFilters+1)
	}
}

func FuzzFilterNeverPanics(f *testing.F) {
	f.Add(`{"a":["x",1,null]}`, `{"a":[1,{"b":[]}]}`)
	f.Add(`{"a":{"b":{"c":[true]}}}`, `{"a":[{"b":[{"c":null}]}]}`)
	f.Fuzz(func(t *testing.T, pattern, value string) {
		parsed, err := parseFilter([]string{pattern})
		if err != nil {
			return
		}
		var tree any
		if json.Unmarshal([]byte(value), &tree) == nil {
			parsed.passes(tree)
		}
	})
}
