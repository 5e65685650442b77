package account

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// FuzzBodies parses a body as each of the inputs. One is refused by a fault that
// says why, or it reads the same when what was read is sent again.
func FuzzBodies(f *testing.F) {
	for _, seed := range inputs {
		f.Add([]byte(seed.body))
	}
	for _, seed := range []string{
		`{"name":"ERP connector","description":null,"website":"https://erp.example.com/?a=b","redirectUri":"http://[::1]:8080/callback"}`,
		`{"name":"Nightly copy","scopes":["orders:read","products:read"],"siteIds":["018F0000-0000-7000-8000-0000000000A1"],"expiresAt":"2027-11-21T01:00:00+01:00"}`,
		`{"scopes":["webhooks:write","orders:read","orders:read"]}`, `{"scopes":null}`, `{"description":"\ud83d\ude00\r\n","website":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkBody(t, body, ParseCreateApplication, func(dto CreateApplicationDto) any { return dto })
		checkBody(t, body, func(body []byte) (CreateApiKeyDto, error) { return ParseCreateKey(body, now) }, func(dto CreateApiKeyDto) any { return dto })
		checkBody(t, body, ParseTokenScopes, func(scopes []string) any { return TokenScopesDto{&scopes} })
		checkBody(t, body, ParseUpdateApplication, func(change UpdateApplicationDto) any {
			sent := map[string]any{}
			for name, p := range map[string]Patch[string]{
				"name": change.Name, "description": change.Description, "website": change.Website, "redirectUri": change.RedirectURI,
			} {
				if p.Given {
					sent[name] = p.Pointer()
				}
			}
			return sent
		})
	})
}

func checkBody[T any](t *testing.T, body []byte, parse func([]byte) (T, error), sent func(T) any) {
	t.Helper()
	first, err := parse(body)
	if err != nil {
		if fa, ok := fault.As(err); !ok || fa.Kind != fault.Invalid || fa.Message == "" {
			t.Fatalf("%q: %v is no refusal of %T", body, err, first)
		}
		return
	}
	again, err := json.Marshal(sent(first))
	if err != nil {
		t.Fatal(err)
	}
	second, err := parse(again)
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Fatalf("%q is %T, and sent again as %s: %v\n%s", body, first, again, err, diff)
	}
}
