package eventsource

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

func TestAFilterPassesWhatOneOfItsPatternsMatches(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	ended := map[string]types.AttributeValue{"t": text("end"), "status": text("DISABLED")}
	for _, test := range []struct {
		name     string
		patterns []string
		image    map[string]types.AttributeValue
		want     bool
	}{
		{"no pattern", nil, nil, true},
		{"one text", []string{`{"t":{"S":["end"]}}`}, ended, true},
		{"one of the texts", []string{`{"t":{"S":["rec","end"]}}`}, ended, true},
		{"other capitals", []string{`{"t":{"S":["END"]}}`}, ended, false},
		{"all attributes", []string{`{"t":{"S":["end"]},"status":{"S":["DISABLED"]}}`}, ended, true},
		{"not all attributes", []string{`{"t":{"S":["end"]},"status":{"S":["ACTIVE"]}}`}, ended, false},
		{"the second pattern", []string{`{"t":{"S":["rec"]}}`, `{"status":{"S":["DISABLED"]}}`}, ended, true},
		{"no such attribute", []string{`{"alert":{"S":["x"]}}`}, ended, false},
		{"no image", []string{`{"t":{"S":["end"]}}`}, nil, false},
		{"another type", []string{`{"t":{"S":["1"]}}`}, map[string]types.AttributeValue{"t": &types.AttributeValueMemberN{Value: "1"}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sources []string
			for _, p := range test.patterns {
				sources = append(sources, `{"dynamodb":{"NewImage":`+p+`}}`)
			}
			parsed, err := parseFilter(sources)
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.passes(test.image); got != test.want {
				t.Errorf("%v: got %v, want %v", sources, got, test.want)
			}
		})
	}
}

func TestFiltersThatAreNotKnownHereAreRefused(t *testing.T) {
	for _, source := range []string{
		``, `{`, `[]`, `{}`, `{"dynamodb":{}}`, `{"eventName":["INSERT"]}`, `{"dynamodb":{"OldImage":{"t":{"S":["x"]}}}}`,
		`{"dynamodb":{"NewImage":{"t":{"N":["1"]}}}}`, `{"dynamodb":{"NewImage":{"t":{"S":[]}}}}`, `{"dynamodb":{"NewImage":{"t":{"S":[{"prefix":"x"}]}}}}`,
		`{"dynamodb":{"NewImage":{"t":{"S":["x"]}}},"eventName":["INSERT"]}`, `{"dynamodb":{"NewImage":{"t":{"S":["x"]},"t":{"S":["y"]}}}}`,
	} {
		if _, err := parseFilter([]string{source}); err == nil || !strings.Contains(err.Error(), source) {
			t.Errorf("parsing %s: got %v, want an error that shows it", source, err)
		}
	}
}
