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

		{`{"a":[{"prefix":"ORG#"}]}`, `{"a":"ORG#1"}`, true},
		{`{"a":[{"prefix":"ORG#"}]}`, `{"a":"IDX#1"}`, false},
		{`{"a":[{"prefix":"ORG#"}]}`, `{"a":7}`, false},
		{`{"a":[{"prefix":{"equals-ignore-case":"org#"}}]}`, `{"a":"ORG#1"}`, true},
		{`{"a":[{"suffix":".png"}]}`, `{"a":"x.png"}`, true},
		{`{"a":[{"suffix":".png"}]}`, `{"a":"x.PNG"}`, false},
		{`{"a":[{"suffix":{"equals-ignore-case":".PNG"}}]}`, `{"a":"x.png"}`, true},
		{`{"a":[{"equals-ignore-case":"Straße"}]}`, `{"a":"STRAßE"}`, true},

		{`{"a":[{"exists":true}]}`, `{"a":null}`, true},
		{`{"a":[{"exists":true}]}`, `{}`, false},
		{`{"a":[{"exists":true}]}`, `{"a":{"b":1}}`, false},
		{`{"a":[{"exists":false}]}`, `{}`, true},
		{`{"a":[{"exists":false}]}`, `{"a":1}`, false},
		{`{"a":{"b":[{"exists":false}]}}`, `{}`, true},
		{`{"a":["x",{"exists":false}]}`, `{}`, true},
		{`{"a":["x",{"exists":false}]}`, `{"a":"y"}`, false},
		{`{"a":[{"exists":true}]}`, `{"a":[]}`, false},

		{`{"a":[{"anything-but":"x"}]}`, `{"a":"y"}`, true},
		{`{"a":[{"anything-but":"x"}]}`, `{"a":"x"}`, false},
		{`{"a":[{"anything-but":"x"}]}`, `{}`, false},
		{`{"a":[{"anything-but":["x","y"]}]}`, `{"a":"y"}`, false},
		{`{"a":[{"anything-but":[1,2]}]}`, `{"a":3}`, true},
		{`{"a":[{"anything-but":{"prefix":"IDX#"}}]}`, `{"a":"IDX#1"}`, false},
		{`{"a":[{"anything-but":{"prefix":"IDX#"}}]}`, `{"a":"ORG#1"}`, true},
		{`{"a":[{"anything-but":{"prefix":["IDX#","RATE#"]}}]}`, `{"a":"RATE#1"}`, false},
		{`{"a":[{"anything-but":{"suffix":"#"}}]}`, `{"a":"x"}`, true},
		{`{"a":[{"anything-but":{"equals-ignore-case":["X"]}}]}`, `{"a":"x"}`, false},

		{`{"a":[{"numeric":["=",5]}]}`, `{"a":5}`, true},
		{`{"a":[{"numeric":[">",0,"<=",5]}]}`, `{"a":5}`, true},
		{`{"a":[{"numeric":[">",0,"<=",5]}]}`, `{"a":5.001}`, false},
		{`{"a":[{"numeric":["<",0]}]}`, `{"a":-3e2}`, true},
		{`{"a":[{"numeric":[">=",1]}]}`, `{"a":"5"}`, false},

		{`{"$or":[{"a":["x"]},{"b":["y"]}]}`, `{"b":"y"}`, true},
		{`{"$or":[{"a":["x"]},{"b":["y"]}]}`, `{"a":"y","b":"x"}`, false},
		{`{"c":["z"],"$or":[{"a":["x"]},{"b":["y"]}]}`, `{"a":"x","c":"w"}`, false},
		{`{"d":{"$or":[{"a":["x"]},{"b":[{"exists":false}]}]}}`, `{"d":{"a":"w"}}`, true},

		{`{"dynamodb":{"NewImage":{"t":{"S":["rec","evt"]}}}}`, `{"eventName":"INSERT","dynamodb":{"NewImage":{"t":{"S":"evt"}}}}`, true},
		{`{"dynamodb":{"NewImage":{"t":{"S":["rec","evt"]}}}}`, `{"eventName":"REMOVE","dynamodb":{"OldImage":{"t":{"S":"evt"}}}}`, false},
		{`{"eventName":["REMOVE"],"userIdentity":{"type":[{"exists":false}]}}`, `{"eventName":"REMOVE"}`, true},
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
		`{"a":[{"prefix":1}]}`, `{"a":[{"prefix":{"suffix":"x"}}]}`, `{"a":[{"prefix":"x","suffix":"y"}]}`, `{"a":[{"wildcard":"x*"}]}`,
		`{"a":[{"exists":"true"}]}`, `{"a":[{"numeric":[">"]}]}`, `{"a":[{"numeric":["!",1]}]}`, `{"a":[{"numeric":[{},1]}]}`,
		`{"a":[{"numeric":[">","1"]}]}`, `{"a":[{"numeric":5}]}`, `{"a":[{"anything-but":[["x"]]}]}`, `{"a":[{"anything-but":{"exists":true}}]}`,
		`{"a":[{"anything-but":{}}]}`, `{"a":[{"equals-ignore-case":{"prefix":"x"}}]}`,
		`{"$or":[{"a":["x"]}]}`, `{"$or":["a","b"]}`, `{"$or":[{"a":["x"]},{}]}`, `{"a":["x"],"a":["y"]}`,
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
	f.Add(`{"a":[{"numeric":[">",0]}]}`, `{"a":[1,{"b":[]}]}`)
	f.Add(`{"$or":[{"a":[{"anything-but":{"prefix":["x"]}}]},{"b":{"c":[null]}}]}`, `{"b":[{"c":null}]}`)
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
