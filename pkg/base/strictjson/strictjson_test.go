package strictjson

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

type colour string

func (c *colour) UnmarshalText(b []byte) error {
	if string(b) != "red" {
		return errors.New("must be red")
	}
	*c = colour(b)
	return nil
}

type refusing struct{}

func (*refusing) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadValue(); err != nil {
		return err
	}
	return fault.Field(fault.InBody, "chosen", fault.DetailNotAllowed, "is refused")
}

type part struct {
	Name   string       `json:"name"`
	Amount value.Amount `json:"amount"`
}

type thing struct {
	ID       value.ID       `json:"id"`
	Name     string         `json:"name"`
	Note     *string        `json:"note"`
	Colour   colour         `json:"colour"`
	Open     bool           `json:"open"`
	Count    int32          `json:"count"`
	At       *value.Time    `json:"at"`
	Parts    []part         `json:"parts"`
	Part     *part          `json:"part"`
	Free     jsontext.Value `json:"free"`
	Labels   map[string]int `json:"labels"`
	Refusing *refusing      `json:"refusing"`
	Ratio    float64        `json:"ratio"`
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for i, tt := range []struct{ body, code, field, detail, contains string }{
		{``, "malformed_json", "", "", "empty"},
		{" \n", "malformed_json", "", "", "empty"},
		{` null`, "validation_failed", "body", "wrong_type", "must be an object"},
		{`[]`, "validation_failed", "body", "wrong_type", "must be an object"},
		{`{`, "malformed_json", "", "", "not valid JSON"},
		{`{"name":"a",}`, "malformed_json", "", "", "not valid JSON"},
		{`{'name':'a'}`, "malformed_json", "", "", "not valid JSON"},
		{`{"name":"a"} {}`, "malformed_json", "", "", "nothing after it"},
		{`{"name":"a"}x`, "malformed_json", "", "", "nothing after it"},
		{"{\"name\":\"\xff\"}", "malformed_json", "", "", "not valid JSON"},
		{`{"name":"\ud800"}`, "malformed_json", "", "", "not valid JSON"},
		{"\ufeff{}", "malformed_json", "", "", "not valid JSON"},
		{strings.Repeat("[", 20_000), "malformed_json", "", "", "not valid JSON"},
		{`[]`, "validation_failed", "body", "wrong_type", "must be an object"},
		{`"x"`, "validation_failed", "body", "wrong_type", "must be an object"},
		{`7`, "validation_failed", "body", "wrong_type", "must be an object"},
		{`{"nam":"a"}`, "validation_failed", "nam", "unknown", "is not a field"},
		{`{"Name":"a"}`, "validation_failed", "Name", "unknown", "is not a field"},
		{`{"parts":[{},{"x":1}]}`, "validation_failed", "parts[1].x", "unknown", "is not a field"},
		{`{"name":"a","name":"b"}`, "validation_failed", "name", "duplicate", "once"},
		{`{"name":"a","\u006eame":"b"}`, "validation_failed", "name", "duplicate", "once"},
		{`{"free":{"a":[{"b":1,"b":2}]}}`, "validation_failed", "free.a[0].b", "duplicate", "once"},
		{`{"name":"a\u0000"}`, "validation_failed", "name", "invalid_format", "control characters: character 2 is U+0000"},
		{`{"name":"\u001f"}`, "validation_failed", "name", "invalid_format", "character 1 is U+001F"},
		{`{"name":"\t\n\r\u007f"}`, "validation_failed", "name", "invalid_format", "character 4 is U+007F"},
		{`{"name":"\u0085"}`, "validation_failed", "name", "invalid_format", "character 1 is U+0085"},
		{"{\"name\":\"é😀\x00\"}", "malformed_json", "", "", "not valid JSON: name holds a control character unescaped: character 12 of the body is U+0000"},
		{"{\"name\":\"a\nb\"}", "malformed_json", "", "", "character 11 of the body is U+000A"},
		{"{\"name\":\"é😀\u0085\"}", "validation_failed", "name", "invalid_format", "character 3 is U+0085"},
		{`{"name":"\u0080"}`, "validation_failed", "name", "invalid_format", "character 1 is U+0080"},
		{`{"name":"\u009f"}`, "validation_failed", "name", "invalid_format", "character 1 is U+009F"},
		{`{"free":{"a":["\u0000"]}}`, "validation_failed", "free.a[0]", "invalid_format", "character 1 is U+0000"},
		{`{"free":{"x\u0000":1}}`, "validation_failed", "free.x\x00", "invalid_format", "character 2 of the name is U+0000"},
		{`{"free":{"a":[1.7976931348623157e308,1e309]}}`, "validation_failed", "free.a[1]", "out_of_range", "as a double can hold"},
		{`{"free":{"a":-1e400}}`, "validation_failed", "free.a", "out_of_range", "as a double can hold"},
		{`{"free":1.7976931348623159e308}`, "validation_failed", "free", "out_of_range", "as a double can hold"},
		{`{"ratio":1e309}`, "validation_failed", "ratio", "out_of_range", "as a double can hold"},
		{`{"name":7}`, "validation_failed", "name", "wrong_type", "must be a string"},
		{`{"note":{}}`, "validation_failed", "note", "wrong_type", "must be a string"},
		{`{"colour":7}`, "validation_failed", "colour", "wrong_type", "must be a string"},
		{`{"colour":["red"]}`, "validation_failed", "colour", "wrong_type", "must be a string"},
		{`{"colour":"blue"}`, "validation_failed", "colour", "invalid_format", "must be red"},
		{`{"id":7}`, "validation_failed", "id", "wrong_type", "must be a string"},
		{`{"id":"7"}`, "validation_failed", "id", "invalid_format", "must be a UUID"},
		{`{"at":7}`, "validation_failed", "at", "wrong_type", "must be a string"},
		{`{"at":"7"}`, "validation_failed", "at", "invalid_format", "RFC 3339"},
		{`{"open":"true"}`, "validation_failed", "open", "wrong_type", "must be true or false"},
		{`{"count":"1"}`, "validation_failed", "count", "wrong_type", "must be a whole number"},
		{`{"count":1.5}`, "validation_failed", "count", "wrong_type", "must be a whole number"},
		{`{"count":1e1}`, "validation_failed", "count", "wrong_type", "must be a whole number"},
		{`{"count":2147483648}`, "validation_failed", "count", "wrong_type", "32 bits"},
		{`{"parts":{}}`, "validation_failed", "parts", "wrong_type", "must be an array"},
		{`{"parts":[7]}`, "validation_failed", "parts[0]", "wrong_type", "must be an object"},
		{`{"parts":[{"amount":"1"}]}`, "validation_failed", "parts[0].amount", "invalid_format", "must be a number"},
		{`{"part":{"amount":1.00001}}`, "validation_failed", "part.amount", "invalid_format", "4 decimals"},
		{`{"part":7}`, "validation_failed", "part", "wrong_type", "must be an object"},
		{`{"labels":[]}`, "validation_failed", "labels", "wrong_type", "must be an object"},
		{`{"labels":{"a":"b"}}`, "validation_failed", "labels.a", "wrong_type", "must be a whole number"},
		{`{"ratio":"1"}`, "validation_failed", "ratio", "wrong_type", "must be a number"},
		{`{"refusing":1}`, "validation_failed", "chosen", "not_allowed", "is refused"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			var v thing
			err := Unmarshal([]byte(tt.body), &v)
			f, ok := fault.As(err)
			if !ok || f.Kind != fault.Invalid || f.Code != tt.code {
				t.Errorf("%.60q: %v, want %s", tt.body, err, tt.code)
				return
			}
			if !strings.Contains(f.Message, tt.contains) || strings.Contains(f.Message, "Go ") || strings.Contains(f.Message, "jsontext") {
				t.Errorf("%.60q: message %q, want …%s…", tt.body, f.Message, tt.contains)
			}
			var field, detail string
			if len(f.Details) > 0 {
				field, detail = f.Details[0].Field, f.Details[0].Code
			}
			if field != tt.field || detail != tt.detail {
				t.Errorf("%.60q: %s of %q, want %s of %q", tt.body, detail, field, tt.detail, tt.field)
			}
		})
	}
}

func TestEveryFaultOfADocumentIsNamed(t *testing.T) {
	many, named := `{"x0":1`, []string{"x0 unknown"}
	for i := 1; i < 30; i++ {
		many += `,"x` + strconv.Itoa(i) + `":1`
		if i < fault.MaxDetails {
			named = append(named, "x"+strconv.Itoa(i)+" unknown")
		}
	}
	for i, tt := range []struct {
		body string
		want []string
		read thing // what is decoded nevertheless
	}{
		{
			`{"name":7,"open":true,"colour":"blue","nam":1,"count":2,"id":"x"}`,
			[]string{"name wrong_type", "colour invalid_format", "nam unknown", "id invalid_format"},
			thing{Open: true, Count: 2},
		},
		{`{"count":"1","part":{"name":"a","amount":1.5},"note":"b\u0001"}`, []string{"note invalid_format", "count wrong_type"}, thing{Part: &part{"a", 15_000}}},
		{`{"refusing":1,"ratio":"x","name":"a"}`, []string{"chosen not_allowed", "ratio wrong_type"}, thing{Name: "a"}},
		{`{"name":"\u0000","free":{"\u0001":["\u0002"]}}`, []string{"name invalid_format", "free.\x01 invalid_format", "free.\x01[0] invalid_format"}, thing{}},
		{many + "}", named, thing{}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			var v thing
			details, err := Collect([]byte(tt.body), &v)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range details {
				got = append(got, d.Field+" "+d.Code)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%.60q (-want +got):\n%s", tt.body, diff)
			}
			if v.Open != tt.read.Open || v.Count != tt.read.Count || v.Name != tt.read.Name && i != 3 || cmp.Diff(tt.read.Part, v.Part) != "" {
				t.Errorf("%.60q: read %+v, want %+v", tt.body, v, tt.read)
			}
		})
	}
}

func TestWhatIsRightIsRead(t *testing.T) {
	var got thing
	body := ` {"name":" tab\tand\nline\r ","note":null,"colour":"red","open":true,"count":-7,"at":"2026-11-21",` +
		`"parts":[{"name":"a","amount":1.5}],"free":{"a":[1,null]},"labels":{"0":1},"ratio":1e-2} `
	if err := Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	at, err := value.ParseTime("2026-11-21")
	if err != nil {
		t.Fatal(err)
	}
	want := thing{
		Name: " tab\tand\nline\r ", Colour: "red", Open: true, Count: -7, At: &at, Parts: []part{{"a", 15_000}},
		Free: jsontext.Value(`{"a":[1,null]}`), Labels: map[string]int{"0": 1}, Ratio: 0.01,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextIsTrimmedWhereAsked(t *testing.T) {
	var got thing
	body := `{"name":" \u00a0 a b \n","note":"  ","parts":[{"name":" c "}],"free":{" x ":" y "},"labels":{" z ":1}}`
	if err := Unmarshal([]byte(body), &got, TrimText()); err != nil {
		t.Fatal(err)
	}
	empty := ""
	want := thing{
		Name: "a b", Note: &empty, Parts: []part{{Name: "c"}}, Free: jsontext.Value(`{" x ":" y "}`), Labels: map[string]int{"z": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for body, field := range map[string]string{`{"name":7}`: "name", `{"colour":" red "}`: "colour", `{"parts":[{"name":[]}]}`: "parts[0].name"} {
		t.Run(body, func(t *testing.T) {
			f, ok := fault.As(Unmarshal([]byte(body), &got, TrimText()))
			if !ok || f.Details[0].Field != field {
				t.Errorf("%v, want it refused by %s", f, field)
			}
		})
	}
	got = thing{Name: "before"}
	if err := Unmarshal([]byte(`{"name":null,"note":null}`), &got, TrimText()); err != nil || got.Name != "" || got.Note != nil {
		t.Errorf("null: %+v, %v", got, err)
	}
}

// FuzzUnmarshal holds the decoder to the standard library's: what it takes,
// that takes too, with the same meaning.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","open":true,"count":1}`, `{"name":"a","name":"b"}`, `{"free":{"a":[1,2,{"b":"\ud83d\ude00"}]}}`, `{"count":1e1}`,
		"{\"name\":\"\xff\"}", `{"name":"\u0000"}`, `[]`, `{} {}`, ` {"labels":{"a":1}} `,
	} {
		f.Add([]byte(seed))
	}
	type plain struct {
		Name   string         `json:"name"`
		Note   *string        `json:"note"`
		Open   bool           `json:"open"`
		Count  int32          `json:"count"`
		Labels map[string]int `json:"labels"`
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got plain
		if err := Unmarshal(body, &got); err != nil {
			if fa, ok := fault.As(err); !ok || fa.Kind != fault.Invalid || fa.Message == "" {
				t.Fatalf("%q: %v is no refusal", body, err)
			}
			return
		}
		var want plain
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("%q is taken, but %v", body, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q:\n%s", body, diff)
		}
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	body := []byte(`{"id":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00","name":"Espresso cup","colour":"red","open":true,"count":7,` +
		`"at":"2026-11-21T06:35:41.242Z","parts":[{"name":"a","amount":1.5},{"name":"b","amount":2.5}],"free":{"a":[1,null]}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var v thing
		if err := Unmarshal(body, &v, TrimText()); err != nil {
			b.Fatal(err)
		}
	}
}
