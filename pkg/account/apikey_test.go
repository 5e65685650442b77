package account

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
)

func TestAKeysCreationChecksItsFields(t *testing.T) {
	sites := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = `"` + value.NewID().String() + `"`
		}
		return strings.Join(list, ",")
	}
	for _, tc := range []struct{ body, want string }{
		{`{"name":"x"}`, "ok"},
		{`{}`, "name required"},
		{`{"name":null}`, "name required"},
		{`{"name":" "}`, "name out_of_range"},
		{`{"name":"x","scopes":null,"siteIds":null,"expiresAt":null}`, "ok"},
		{`{"name":"x","scopes":["orders:read","orders:read"]}`, "ok"},
		{`{"name":"x","scopes":[]}`, "scopes out_of_range"},
		{`{"name":"x","scopes":["orders:read","orders:write"]}`, "scopes[1] unknown"},
		{`{"name":"x","scopes":["developers:read"]}`, "scopes[0] unknown"},
		{`{"name":"x","scopes":[null]}`, "scopes[0] unknown"},
		{`{"name":"x","scopes":"orders:read"}`, "scopes wrong_type"},
		{`{"name":"x","scopes":[1]}`, "scopes[0] wrong_type"},
		{`{"name":"x","siteIds":[]}`, "siteIds out_of_range"},
		{`{"name":"x","siteIds":["x"]}`, "siteIds[0] invalid_format"},
		{`{"name":"x","siteIds":[null]}`, "siteIds[0] invalid_format"},
		{`{"name":"x","allowedNetworks":[]}`, "allowedNetworks out_of_range"},
		{`{"name":"x","allowedNetworks":["203.0.113.0/24","2001:db8::/32","0.0.0.0/0","198.51.100.7/32"]}`, "ok"},
		{`{"name":"x","allowedNetworks":["203.0.113.7"]}`, "allowedNetworks[0] invalid_format"},
		{`{"name":"x","allowedNetworks":["203.0.113.7/24"]}`, "allowedNetworks[0] invalid_format"},
		{`{"name":"x","allowedNetworks":["2001:db8::1/32"]}`, "allowedNetworks[0] invalid_format"},
		{`{"name":"x","allowedNetworks":["203.0.113.0/33"]}`, "allowedNetworks[0] invalid_format"},
		{`{"name":"x","allowedNetworks":["::ffff:203.0.113.0/120"]}`, "allowedNetworks[0] invalid_format"},
		{`{"name":"x","allowedNetworks":[` + networks(50) + `]}`, "ok"},
		{`{"name":"x","allowedNetworks":[` + networks(51) + `]}`, "allowedNetworks out_of_range"},
		{`{"name":"x","siteIds":[` + sites(100) + `]}`, "ok"},
		{`{"name":"x","siteIds":[` + sites(101) + `]}`, "siteIds out_of_range"},
		{`{"name":"x","expiresAt":"` + now.String() + `"}`, "expiresAt out_of_range"},
		{`{"name":"x","expiresAt":"` + (now + 1).String() + `"}`, "ok"},
		{`{"name":"x","expiresAt":"2099-01-01"}`, "ok"},
		{`{"name":"x","expiresAt":"tomorrow"}`, "expiresAt invalid_format"},
		{`{"name":"x","expiresAt":1}`, "expiresAt wrong_type"},
		{`{"name":"x","rateLimit":1}`, "rateLimit unknown"},
	} {
		t.Run(tc.body, func(t *testing.T) {
			_, err := ParseCreateKey([]byte(tc.body), now)
			if got := problems(t, err); got != tc.want {
				t.Errorf("%.200s: got %s, want %s", tc.body, got, tc.want)
			}
		})
	}
}

func TestAKeysShape(t *testing.T) {
	app := newTestApplication(t)
	a, b := value.MustID("018f0000-0000-7000-8000-0000000000a1"), value.MustID("018f0000-0000-7000-8000-0000000000a2")
	dto, err := ParseCreateKey(fmt.Appendf(nil, `{"name":" till ","scopes":["products:read","orders:read","orders:read"],"siteIds":["%s","%s","%s"],
		"allowedNetworks":["203.0.113.0/24","2001:DB8::/32","203.0.113.0/24"]}`, b, a, b), now)
	if err != nil {
		t.Fatal(err)
	}
	key, credential := NewKey(&app, user, dto, now)
	body, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"` + key.ID.String() + `","organizationId":"` + org.String() + `","applicationId":"` + app.ID.String() +
		`","name":"till","prefix":"` + key.Key[:17] + `","last4":"` + key.Key[51:] + `","scopes":["orders:read","products:read"],"siteIds":["` +
		a.String() + `","` + b.String() + `"],"allowedNetworks":["2001:db8::/32","203.0.113.0/24"],"status":"ACTIVE","lastUsedAt":null,"expiresAt":null,"revokedAt":null,"createdBy":"` +
		user.String() + `","createdAt":"` + now.String() + `","updatedAt":"` + now.String() + `","key":"` + key.Key + `"}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	wantCredential := Credential{
		KeyText: key.Key[9:17], Hash: HashSecret(key.Key), OrganizationID: org, ApplicationID: app.ID, KeyID: key.ID,
		Scopes: []string{"orders:read", "products:read"}, SiteIDs: Sites{a, b}, Networks: []string{"2001:db8::/32", "203.0.113.0/24"},
	}
	if diff := cmp.Diff(wantCredential, credential); diff != "" {
		t.Errorf("credential (-want +got):\n%s", diff)
	}
	var back APIKey
	if err := json.Unmarshal(body[:strings.LastIndex(string(body), `,"key"`)], &back); err == nil {
		t.Error("half a body was accepted")
	}
	if stored, err := json.Marshal(key.APIKey); err != nil || json.Unmarshal(stored, &back) != nil || cmp.Diff(key.APIKey, back) != "" {
		t.Errorf("stored and read again: got %+v, %v, want %+v", back, err, key.APIKey)
	}
}

func TestAKeyWithoutLimitsHasEveryReadScopeAndEverySite(t *testing.T) {
	app := newTestApplication(t)
	key, _ := NewKey(&app, user, CreateApiKeyDto{Name: ptr("x")}, now)
	body, err := json.Marshal(key.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"siteIds":null`, `"scopes":["` + strings.Join(ReadScopes(), `","`) + `"]`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("got %s, want %s in it", body, part)
		}
	}
}

func TestAKeysStatusFollowsItsTimes(t *testing.T) {
	app := newTestApplication(t)
	expires := now.Add(time.Hour)
	key, _ := NewKey(&app, user, CreateApiKeyDto{Name: ptr("x"), ExpiresAt: &expires}, now)
	for _, tc := range []struct {
		at   value.Time
		want KeyStatus
	}{{now, KeyActive}, {expires - 1, KeyActive}, {expires, KeyExpired}} {
		t.Run(fmt.Sprint(tc.at), func(t *testing.T) {
			if got := key.At(tc.at).Status; got != tc.want {
				t.Errorf("at %v: got %s, want %s", tc.at, got, tc.want)
			}
		})
	}
	if !key.Revoke(now) || key.UpdatedAt != now+1 || key.At(expires).Status != KeyRevoked {
		t.Errorf("revoked: got %+v", key.APIKey)
	}
	if before := key.APIKey; key.Revoke(now+9) || cmp.Diff(before, key.APIKey) != "" {
		t.Errorf("revoked again: got %+v, want it unchanged", key.APIKey)
	}
}

// networks lists n networks as the items of a JSON array.
func networks(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"10.0.%d.0/24"`, i)
	}
	return strings.Join(list, ",")
}

func TestAnAddressIsInANetwork(t *testing.T) {
	some := []string{"203.0.113.64/26", "2001:db8:1::/48"}
	for _, tc := range []struct {
		networks []string
		address  string
		want     bool
	}{
		{some, "203.0.113.63", false},
		{some, "203.0.113.64", true},
		{some, "203.0.113.127", true},
		{some, "203.0.113.128", false},
		{some, "::ffff:203.0.113.64", true},
		{some, "::ffff:203.0.113.63", false},
		{some, "2001:db8:0:ffff:ffff:ffff:ffff:ffff", false},
		{some, "2001:db8:1::", true},
		{some, "2001:db8:1:ffff:ffff:ffff:ffff:ffff%eth0", true},
		{some, "2001:db8:2::", false},
		{[]string{"0.0.0.0/0"}, "198.51.100.7", true},
		{[]string{"0.0.0.0/0"}, "2001:db8::1", false},
		{[]string{"::/0"}, "::ffff:198.51.100.7", false},
		{some, "", false},
		{some, "203.0.113.64, 203.0.113.65", false},
		{[]string{"broken"}, "203.0.113.64", false},
	} {
		if got := InNetworks(tc.networks, tc.address); got != tc.want {
			t.Errorf("%s in %v: got %t", tc.address, tc.networks, got)
		}
	}
}
