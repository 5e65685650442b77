package commerce

import (
	"slices"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const orgMember = `"organizationId":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f00"`

func TestAMessageOfOneRecord(t *testing.T) {
	body := `{"kind":"product","op":"put",` + orgMember + `,"record":{"id":"x"},"siteIds":["` + testSite.String() + `"],"version":12,"silent":true}`
	changes, refusals := ParseMessage([]byte(body))
	version := int64(12)
	want := []Change{{
		Kind: KindProduct, Op: OpPut, OrganizationID: testOrg, Record: []byte(`{"id":"x"}`),
		Sites: Sites{Given: true, Value: []value.ID{testSite}}, Version: &version, Silent: true, Position: Alone,
	}}
	if diff := cmp.Diff(want, changes); diff != "" || refusals != nil {
		t.Fatalf("refusals %+v, changes:\n%s", refusals, diff)
	}
}

func TestSitesOfAMessage(t *testing.T) {
	for given, want := range map[string]Sites{
		``:                {},
		`,"siteIds":null`: {Given: true},
		`,"siteIds":[]`:   {Given: true},
		`,"siteIds":["` + testSite.String() + `","` + testOrg.String() + `","` + testSite.String() + `"]`: {
			Given: true, Value: []value.ID{testOrg, testSite},
		},
	} {
		t.Run(given, func(t *testing.T) {
			body := `{"kind":"product","op":"put",` + orgMember + `,"record":{}` + given + `}`
			changes, refusals := ParseMessage([]byte(body))
			if len(refusals) > 0 || !cmp.Equal(changes[0].Sites, want) {
				t.Errorf("%+v, %+v; want %+v", changes, refusals, want)
			}
		})
	}
}

func TestReferenceOfAMessage(t *testing.T) {
	longest := strings.Repeat("é", maxReference)
	for _, tt := range []struct {
		kind, member string
		want         Reference
		refused      string
	}{
		{"product", ``, Reference{}, ""},
		{"product", `,"externalRef":null`, Reference{Given: true}, ""},
		{"product", `,"externalRef":" ERP 7 "`, Reference{Given: true, Value: "ERP 7"}, ""},
		{"product", `,"externalRef":"` + longest + `"`, Reference{Given: true, Value: longest}, ""},
		{"product", `,"externalRef":"` + longest + `x"`, Reference{}, "must have at most 120 characters"},
		{"product", `,"externalRef":7`, Reference{}, "must be a string"},
		{"order", `,"externalRef":"7"`, Reference{}, "for products only"},
	} {
		t.Run(tt.kind+tt.member, func(t *testing.T) {
			changes, refusals := ParseMessage([]byte(`{"kind":"` + tt.kind + `","op":"put",` + orgMember + `,"record":{}` + tt.member + `}`))
			if tt.refused != "" {
				if len(refusals) != 1 || refusals[0].Field != "externalRef" || !strings.Contains(refusals[0].Message, tt.refused) {
					t.Errorf("refused %+v, want %s", refusals, tt.refused)
				}
				return
			}
			if len(refusals) > 0 || changes[0].ExternalRef != tt.want {
				t.Fatalf("%+v, %+v; want %+v", changes, refusals, tt.want)
			}
			if again, _ := ParseMessage(changes[0].Message()); again[0].ExternalRef != tt.want {
				t.Errorf("%+v after its own message, want %+v", again[0].ExternalRef, tt.want)
			}
		})
	}
}

func TestAMessageOfManyKeepsTheOrderAndTheGoodOnes(t *testing.T) {
	good := func(id string) string { return `{"kind":"order","op":"put","record":{"id":"` + id + `"}}` }
	bad := []struct{ entry, field, body string }{
		{`{"kind":"ordr","op":"put","record":{"id":"1"}}`, "kind", `{` + orgMember + `,"kind":"ordr","op":"put","record":{"id":"1"}}`},
		{`{"kind":"order","op":"put","record":{"a":"` + "\\u0000" + `"}}`, "record.a", `{` + orgMember + `,"kind":"order","op":"put","record":{"a":"` + "\\u0000" + `"}}`},
		{`{"kind":"order","op":"put","record":{"a":1,"a":2}}`, "record.a", `{` + orgMember + `,"kind":"order","op":"put","record":{"a":1,"a":2}}`},
		{`{"kind":"order","op":"put","record":{},` + orgMember + `}`, "organizationId", `{` + orgMember + `,"records":[{"kind":"order","op":"put","record":{},` + orgMember + `}]}`},
		{`7`, "body", `{` + orgMember + `,"records":[7]}`},
		{`{}`, "kind", `{` + orgMember + `,"records":[{}]}`},
	}
	for _, tt := range bad {
		t.Run(tt.entry, func(t *testing.T) {
			body := `{"records":[` + good("1") + `,` + tt.entry + `,` + good("2") + `],` + orgMember + `}`
			changes, refusals := ParseMessage([]byte(body))
			if len(changes) != 2 || string(changes[0].Record) != `{"id":"1"}` || string(changes[1].Record) != `{"id":"2"}` {
				t.Errorf("changes %+v", changes)
			}
			if len(refusals) != 1 || refusals[0].Field != tt.field || string(refusals[0].Body) != tt.body {
				t.Errorf("refusals %+v\nbody %s", refusals, refusals[0].Body)
				return
			}
			_, again := ParseMessage(refusals[0].Body)
			if len(again) != 1 || again[0].Reason != refusals[0].Reason {
				t.Errorf("sent again it is %+v, first %+v", again, refusals[0])
			}
		})
	}
}

func TestAControlCharacterInAMessageIsTold(t *testing.T) {
	for body, want := range map[string]string{
		"{\"kind\":\"é\n\"}": "the message is not valid JSON: kind holds a control character unescaped: character 11 of the message is U+000A",
		`{` + orgMember + `,"kind":"order","op":"put","record":{"notes":"é\u0085"}}`: "record.notes must not contain control characters: character 2 is U+0085",
	} {
		t.Run(want, func(t *testing.T) {
			if _, refusals := ParseMessage([]byte(body)); len(refusals) != 1 || refusals[0].Message != want {
				t.Errorf("%q: got %+v, want %s", body, refusals, want)
			}
		})
	}
}

func TestABadMessageIsRefusedWhole(t *testing.T) {
	entry := `{"kind":"order","op":"put","record":{}}`
	for _, tt := range []struct{ body, reason, field string }{
		{``, "malformed_json", ""},
		{`nonsense`, "malformed_json", ""},
		{`{"kind":`, "malformed_json", ""},
		{`[]`, "validation_failed", "body"},
		{`"x"`, "validation_failed", "body"},
		{`{} {}`, "malformed_json", ""},
		{"{\"kind\":\"\xff\"}", "malformed_json", ""},
		{`{}`, "validation_failed", "organizationId"},
		{`{` + orgMember + `}`, "validation_failed", "kind"},
		{`{` + orgMember + `,"kind":"order"}`, "validation_failed", "op"},
		{`{` + orgMember + `,"kind":"order","op":"put"}`, "validation_failed", "record"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":null}`, "validation_failed", "record"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":[]}`, "validation_failed", "record"},
		{`{` + orgMember + `,"kind":"order","op":"upsert","record":{}}`, "validation_failed", "op"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"more":1}`, "validation_failed", "more"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"version":-1}`, "validation_failed", "version"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"version":1.5}`, "validation_failed", "version"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"version":"1"}`, "validation_failed", "version"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"version":9223372036854775808}`, "validation_failed", "version"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"silent":"yes"}`, "validation_failed", "silent"},
		{`{` + orgMember + `,"kind":"order","op":"put","record":{},"siteIds":[]}`, "validation_failed", "siteIds"},
		{`{` + orgMember + `,"kind":"category","op":"put","record":{},"siteIds":null}`, "validation_failed", "siteIds"},
		{`{` + orgMember + `,"kind":"product","op":"put","record":{},"siteIds":["x"]}`, "validation_failed", "siteIds[0]"},
		{`{` + orgMember + `,"kind":"product","op":"put","record":{},"siteIds":"x"}`, "validation_failed", "siteIds"},
		{`{"organizationId":"x","kind":"order","op":"put","record":{}}`, "validation_failed", "organizationId"},
		{`{` + orgMember + `,"records":[]}`, "validation_failed", "records"},
		{`{` + orgMember + `,"records":null}`, "validation_failed", "records"},
		{`{` + orgMember + `,"records":{}}`, "validation_failed", "records"},
		{`{` + orgMember + `,"records":[` + strings.TrimSuffix(strings.Repeat(entry+",", 501), ",") + `]}`, "validation_failed", "records"},
		{`{` + orgMember + `,"records":[` + entry + `],"kind":"order"}`, "validation_failed", "kind"},
		{`{` + orgMember + `,` + orgMember + `,"records":[` + entry + `]}`, "validation_failed", "organizationId"},
		{`{"records":[` + entry + `]}`, "validation_failed", "organizationId"},
		{`{"organizationId":7,"records":[` + entry + `]}`, "validation_failed", "organizationId"},
	} {
		t.Run(tt.body, func(t *testing.T) {
			changes, refusals := ParseMessage([]byte(tt.body))
			if changes != nil || len(refusals) != 1 {
				t.Errorf("%.120s: %+v, %+v; want one refusal", tt.body, changes, refusals)
				return
			}
			r := refusals[0]
			if r.Reason != tt.reason || r.Field != tt.field || r.Message == "" || string(r.Body) != tt.body {
				t.Errorf("%.120s: %+v; want %s of %q", tt.body, r, tt.reason, tt.field)
			}
		})
	}
}

func TestFiveHundredRecordsAreAMessage(t *testing.T) {
	entry := `{"kind":"order","op":"delete","record":{"id":"1"}}`
	changes, refusals := ParseMessage([]byte(`{` + orgMember + `,"records":[` + strings.TrimSuffix(strings.Repeat(entry+",", 500), ",") + `]}`))
	if len(changes) != 500 || refusals != nil {
		t.Errorf("%d changes, %+v", len(changes), refusals)
	}
}

func TestARefusedChangeCanBeSentAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Change{
			Kind:           rapid.SampledFrom(Kinds()).Draw(t, "kind"),
			Op:             rapid.SampledFrom([]Op{OpPut, OpDelete}).Draw(t, "op"),
			OrganizationID: testOrg,
			Record:         []byte(`{"id":7}`),
			Silent:         rapid.Bool().Draw(t, "silent"),
			Position:       Alone,
		}
		if rapid.Bool().Draw(t, "versioned") {
			version := rapid.Int64Range(0, 1<<62).Draw(t, "version")
			c.Version = &version
		}
		if c.Kind == KindProduct && rapid.Bool().Draw(t, "sites given") {
			c.Sites = Sites{Given: true}
			if rapid.Bool().Draw(t, "some sites") {
				c.Sites.Value = []value.ID{testOrg, testSite}
			}
		}
		_, err := Apply(nil, c, testNow)
		if err == nil {
			t.Fatal("the record is not refused")
		}
		refusal := Refuse(c, err)
		if refusal.Field != "record.id" || refusal.Reason != "validation_failed" {
			t.Fatalf("refusal %+v", refusal)
		}
		changes, refusals := ParseMessage(refusal.Body)
		if diff := cmp.Diff([]Change{c}, changes); diff != "" || refusals != nil {
			t.Fatalf("%s\nrefusals %+v\n%s", refusal.Body, refusals, diff)
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte(`{"kind":"product","op":"put",` + orgMember + `,"record":{"id":"` + testID.String() + `","name":"a"},"siteIds":null}`))
	f.Add([]byte(`{` + orgMember + `,"records":[{"kind":"order","op":"delete","record":{"id":"1"}},7,{}]}`))
	f.Add([]byte(`{` + orgMember + `,"records":[{"kind":"invoice","op":"put","version":1,"record":` + exampleRecords[KindInvoice] + `}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		changes, refusals := ParseMessage(body)
		if len(changes)+len(refusals) == 0 {
			t.Fatalf("%q is neither changes nor refused", body)
		}
		for _, r := range refusals {
			if r.Reason == "" || r.Message == "" {
				t.Fatalf("%q: refusal without a reason: %+v", body, r)
			}
			if kind, _ := r.About(); kind != "" && !slices.Contains(Kinds(), kind) {
				t.Fatalf("%q: refusal of a %s", body, kind)
			}
			if again, refused := ParseMessage(r.Body); len(again) != 0 || len(refused) != 1 {
				t.Fatalf("%q: the refused %q is %+v, %+v when sent again", body, r.Body, again, refused)
			}
		}
		for _, c := range changes {
			again, refused := ParseMessage(c.Message())
			if len(again) != 1 || refused != nil {
				t.Fatalf("%q: the change %s is %+v, %+v when sent again", body, c.Message(), again, refused)
			}
			next, err := Apply(nil, c, testNow)
			if err != nil || next.Deleted {
				continue
			}
			if twice, err := Apply(next, c, testNow+1); twice != nil || err != nil {
				t.Fatalf("%q: applied again: %+v, %v", body, twice, err)
			}
		}
	})
}
