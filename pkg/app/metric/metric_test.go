package metric_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/commerce-integration/service/pkg/app/metric"
)

// schema is that of the format's specification: of the metadata, and of the
// members that it refers to what a schema can say.
const schema = `{
  "type": "object",
  "required": ["_aws"],
  "properties": {
    "_aws": {
      "type": "object",
      "required": ["Timestamp", "CloudWatchMetrics"],
      "properties": {
        "Timestamp": {"type": "integer", "minimum": 0},
        "CloudWatchMetrics": {
          "type": "array",
          "items": {
            "type": "object",
            "required": ["Namespace", "Dimensions", "Metrics"],
            "additionalProperties": false,
            "properties": {
              "Namespace": {"type": "string", "minLength": 1, "maxLength": 1024},
              "Dimensions": {"type": "array", "minItems": 1, "items": {
                "type": "array", "minItems": 1, "maxItems": 30, "items": {"type": "string", "minLength": 1, "maxLength": 250}}},
              "Metrics": {"type": "array", "maxItems": 100, "items": {
                "type": "object", "required": ["Name"], "additionalProperties": false,
                "properties": {
                  "Name": {"type": "string", "minLength": 1, "maxLength": 1024},
                  "Unit": {"enum": ["Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes",
                    "Bits", "Kilobits", "Megabits", "Gigabits", "Terabits", "Percent", "Count", "Bytes/Second", "Kilobytes/Second",
                    "Megabytes/Second", "Gigabytes/Second", "Terabytes/Second", "Bits/Second", "Kilobits/Second", "Megabits/Second",
                    "Gigabits/Second", "Terabits/Second", "Count/Second", "None"]},
                  "StorageResolution": {"enum": [1, 60]}}}}}}}}}},
  "additionalProperties": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024}, {"type": "number"},
    {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "number"}}]}
}`

var now = time.UnixMilli(1_795_000_000_000)

// parse reads lines, each valid, by their dimension's value: metric to values.
func parse(t *testing.T, text string) map[string]map[string][]float64 {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err := errors.Join(err, compiler.AddResource("emf.json", parsed)); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("emf.json")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string][]float64{}
	for line := range strings.Lines(text) {
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err := errors.Join(err, compiled.Validate(document)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var head struct {
			AWS struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		members := map[string]any{}
		if err := errors.Join(json.Unmarshal([]byte(line), &head), json.Unmarshal([]byte(line), &members)); err != nil {
			t.Fatal(err)
		}
		directive := head.AWS.CloudWatchMetrics[0]
		if head.AWS.Timestamp != now.UnixMilli() || directive.Namespace != "Commerce/x" {
			t.Errorf("%s: the time or the namespace is another", line)
		}
		of, ok := members[directive.Dimensions[0][0]].(string)
		if !ok || len(members) != 2+len(directive.Metrics) {
			t.Fatalf("%s: the members are not those that it declares", line)
		}
		if found[of] == nil {
			found[of] = map[string][]float64{}
		}
		for _, m := range directive.Metrics {
			switch v := members[m.Name].(type) {
			case float64:
				found[of][m.Name] = append(found[of][m.Name], v)
			case []any:
				for _, e := range v {
					found[of][m.Name] = append(found[of][m.Name], e.(float64))
				}
			default:
				t.Errorf("%s: no value of %s", line, m.Name)
			}
		}
	}
	return found
}

func recorder(out *bytes.Buffer, byOrganization bool) *metric.Recorder {
	return metric.New(out, metric.Config{Namespace: "Commerce/x", Function: "stack-Api-1", ByOrganization: byOrganization})
}

func TestLinesAreOfTheFormat(t *testing.T) {
	for name, row := range map[string]struct {
		byOrganization bool
		want           map[string]map[string][]float64
	}{
		"of the function": {false, map[string]map[string][]float64{
			"stack-Api-1":   {"Requests": {3}, "Latency": {1.5, 0}, "CredentialsRefused": {1}, "Delivered": {0.5}},
			"token_expired": {"CredentialsRefused": {1}},
		}},
		"and of organizations": {true, map[string]map[string][]float64{
			"stack-Api-1":   {"Requests": {3}, "Latency": {1.5, 0}, "CredentialsRefused": {1}, "Delivered": {0.5}},
			"token_expired": {"CredentialsRefused": {1}}, "a \"b\"": {"Requests": {1}, "CredentialsRefused": {1}}, "c": {"Requests": {2}, "Latency": {1.5}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := recorder(&out, row.byOrganization)
			r.Add(`a "b"`, metric.Requests, 1)
			r.Add("c", metric.Requests, 2)
			r.Add("c", metric.ServerErrors, 0)
			r.Add("", metric.Delivered, 0.5)
			r.Measure("c", metric.Latency, 1500*time.Microsecond, now)
			r.Measure("", metric.Latency, -time.Second, now)
			r.Refuse(`a "b"`, "token_expired")
			r.End(now)
			if diff := cmp.Diff(row.want, parse(t, out.String())); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// Of the invocations of a minute only the first writes, with the sums since its
// last line, and those that failed.
func TestALineIsWrittenOnceInAMinute(t *testing.T) {
	var out bytes.Buffer
	r := recorder(&out, false)
	minute := now.Truncate(time.Minute)
	r.End(minute) // without anything to write
	for _, step := range []struct {
		after  time.Duration
		failed float64
		want   string // requests since the last line
	}{
		{10 * time.Second, 0, `"Requests":1,`},
		{30 * time.Second, 0, ""},
		{time.Minute - 1, 0, ""},
		{time.Minute, 0, `"Requests":3,`},
		{time.Minute, 0, ""},
		{70 * time.Second, 1, `"Requests":2,"ServerErrors":1,`},
		{80 * time.Second, 0, ""},
		{5 * time.Minute, 0, `"Requests":2,`},
	} {
		out.Reset()
		r.Add("", metric.Requests, 1)
		r.Add("", metric.ServerErrors, step.failed)
		r.End(minute.Add(step.after))
		if got := out.String(); (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
			t.Errorf("after %s: wrote %q, want %q", step.after, got, step.want)
		}
	}
}

func TestNothingIsWrittenOfNothing(t *testing.T) {
	var out bytes.Buffer
	recorder(&out, true).End(now)
	if out.Len() > 0 {
		t.Errorf("wrote %s", out.String())
	}
}

// A line takes at most 100 values of a metric: more are more lines.
func TestManyValuesAreSeveralLines(t *testing.T) {
	for _, n := range []int{99, 100, 101, 250} {
		var out bytes.Buffer
		r := recorder(&out, false)
		for range n {
			r.Measure("", metric.QueueAge, time.Second, now)
		}
		r.Add("", metric.ServerErrors, 1)
		r.End(now)
		if got := len(parse(t, out.String())["stack-Api-1"]["QueueAge"]); got != n {
			t.Errorf("%d values are written, want %d", got, n)
		}
	}
}
