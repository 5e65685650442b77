package app_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/issuer"
	"github.com/commerce-integration/service/pkg/webhook"
)

// reach is what a credential gets at: records of a kind and site that it reads, and
// that it posts records.
type reach map[string]bool

const posts = "posts"

func (to reach) add(kinds ...commerce.Kind) {
	for _, kind := range kinds {
		to[string(kind)+" of A"], to[string(kind)+" of B"] = true, true
	}
}

// String names the kinds.
func (to reach) String() string {
	var names []string
	for _, kind := range commerce.Kinds() {
		a, b := to[string(kind)+" of A"], to[string(kind)+" of B"]
		switch {
		case a && b:
			names = append(names, kind.Plural())
		case a:
			names = append(names, kind.Plural()+" of A")
		}
	}
	if len(names) == len(commerce.Kinds()) && !strings.Contains(names[0], "of A") {
		names = []string{"all records"}
	}
	if to[posts] {
		names = append(names, posts)
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}

// detour leads from a credential to something else that reaches records.
type detour struct {
	name string
	take func(w *accessScene, c *credential, to reach)
}

func detours() []detour {
	const (
		applications = "/developers/applications"
		endpoints    = "/developers/webhooks/endpoints"
	)
	return []detour{
		{"a new key", func(w *accessScene, c *credential, to reach) {
			for _, scopes := range append([]string{""}, strings.Fields(readScopes)...) {
				body := `{"name":"k"}`
				if scopes != "" {
					body = `{"name":"k","scopes":["` + scopes + `"]}`
				}
				if _, m := w.try(c, "POST", applications+"/{scratch}/api-keys", body); m.Key != "" {
					w.reachOf(&credential{key: m.Key}, to)
				}
			}
		}},
		{"a new application", func(w *accessScene, c *credential, to reach) {
			_, m := w.try(c, "POST", applications, `{"name":"a"}`)
			w.client(m, "", to)
			w.try(c, "DELETE", applications+"/"+m.ID, "")
		}},
		{"a new source", func(w *accessScene, c *credential, to reach) {
			status, m := w.try(c, "POST", "/developers/sources", `{"kind":"SHOPIFY","name":"s","secret":"shpss_0123456789abcdef0123456789abcdef"}`)
			if status == http.StatusCreated {
				to[posts] = true
				w.try(&credential{token: w.owner}, "DELETE", "/developers/sources/"+m.ID, "")
			}
		}},
		{"a rotated client secret", func(w *accessScene, c *credential, to reach) {
			for _, application := range []string{"{spare}", "{modest}"} {
				_, m := w.try(c, "POST", applications+"/"+application+"/rotate-secret", "")
				w.client(m, "", to)
				if m.ClientSecret != "" && application == "{modest}" {
					w.kept["modestSecret"] = m.ClientSecret
				}
			}
		}},
		{"a grant", func(w *accessScene, c *credential, to reach) {
			client := made{ClientID: w.kept["modestClient"], ClientSecret: w.kept["modestSecret"]}
			for _, scope := range strings.Fields(granted) {
				if scope == "orders:read" { // it has that
					continue
				}
				if status, _ := w.try(c, "PUT", applications+"/{modest}/token-scopes", `{"scopes":["orders:read","`+scope+`"]}`); status == http.StatusOK {
					w.Pass(5 * time.Second) // until everybody knows
					w.client(client, scope, to)
				}
			}
			w.do(w.owner, "PUT", applications+"/{modest}/token-scopes", `{"scopes":["orders:read"]}`)
		}},
		{"an authorization", func(w *accessScene, c *credential, to reach) {
			for _, scope := range strings.Fields(granted) {
				if token := w.granted(c, "application", scope); token != "" {
					w.reachOf(&credential{token: token}, to)
				}
			}
		}},
		{"a portal session", func(w *accessScene, c *credential, to reach) {
			if token := w.opened(c, "application", "webhooks:read webhooks:write"); token != "" {
				session := &credential{token: token, application: "application"}
				w.reachOf(session, to)
				for _, d := range detours() {
					if d.name != "a portal session" {
						d.take(w, session, to)
					}
				}
			}
		}},
		{"a subscription", func(w *accessScene, c *credential, to reach) {
			subscriptions := map[string][]commerce.Kind{"*": commerce.Kinds(), "payment.*": {commerce.KindOrder}}
			for _, kind := range commerce.Kinds() {
				subscriptions[string(kind)+".*"] = []commerce.Kind{kind}
			}
			application := cmp.Or(c.application, "application")
			if c.other { // its own organization has an application, too
				application = "application"
			}
			for events, kinds := range subscriptions {
				body := `{"url":"https://example.com/` + value.NewID().String() + `","events":["` + events + `"]}`
				if _, m := w.try(c, "POST", endpoints+"?applicationId={"+application+"}", body); m.ID != "" {
					to.add(kinds...)
					w.try(c, "DELETE", endpoints+"/"+m.ID, "")
				}
				if status, _ := w.try(c, "PATCH", endpoints+"/{widened}", `{"events":["`+events+`","webhook.test"]}`); status == http.StatusOK {
					to.add(kinds...)
					w.do(w.owner, "PATCH", endpoints+"/{widened}", `{"events":["webhook.test"]}`)
				}
			}
		}},
		{"another's endpoint", func(w *accessScene, c *credential, to reach) {
			for _, change := range []struct{ method, path, body string }{
				{"PATCH", "", `{"url":"https://example.com/` + value.NewID().String() + `"}`},
				{"PUT", "/delivery", `{"payload":"full"}`},
				{"POST", "/rotate-secret", ""},
			} {
				// Nothing but the precondition keeps it from being changed.
				if status, _ := w.try(c, change.method, endpoints+"/{everything}"+change.path, change.body, "If-Match", `"none"`); status == http.StatusPreconditionFailed {
					to.add(commerce.Kinds()...)
				}
			}
		}},
		{"the history", func(w *accessScene, c *credential, to reach) {
			for _, kind := range commerce.Kinds() {
				if _, m := w.try(c, "GET", "/developers/webhooks/events/{history of "+string(kind)+"}", ""); m.Payload != nil {
					to.add(kind)
				}
				if status, _ := w.try(c, "GET", "/developers/webhooks/trace/{"+string(kind)+" of B}", ""); status == http.StatusOK {
					to.add(kind)
				}
			}
			if status, _ := w.try(c, "POST", endpoints+"/{everything}/delivery/preview", `{}`); status == http.StatusOK {
				to.add(commerce.Kinds()...)
			}
		}},
	}
}

// try makes a request with the credential; m is empty where it is refused.
func (w *accessScene) try(c *credential, method, path, body string, headers ...string) (status int, m made) {
	w.t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	if c.token != "" {
		header.Set("Authorization", "Bearer "+c.token)
	}
	if c.key != "" {
		header.Set("X-API-Key", c.key)
	}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	status, answer := w.send(method, w.expand(path), body, header)
	if status < 300 && answer != "" {
		if err := json.Unmarshal([]byte(answer), &m); err != nil {
			w.t.Fatalf("%s %s: %s: %v", method, path, answer, err)
		}
	}
	return status, m
}

// client adds what a token of the client reaches.
func (w *accessScene) client(m made, scope string, to reach) {
	w.t.Helper()
	if m.ClientSecret == "" {
		return
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {m.ClientID}, "client_secret": {m.ClientSecret}}
	if scope != "" {
		form.Set("scope", scope)
	}
	w.reachOf(&credential{token: w.do("", "POST", "/oauth/token", form.Encode()).AccessToken}, to)
}

// reachOf adds what the credential reaches by itself.
func (w *accessScene) reachOf(c *credential, to reach) {
	w.t.Helper()
	for _, kind := range commerce.Kinds() {
		for _, record := range []string{string(kind) + " of A", string(kind) + " of B"} {
			if status, _ := w.try(c, "GET", "/api/"+kind.Plural()+"/{"+record+"}", ""); status == http.StatusOK {
				to[record] = true
			}
		}
	}
	if status, _ := w.try(c, "POST", "/ingest/records", `{"records":[{"kind":"order","op":"delete","record":{"id":"`+value.NewID().String()+`"}}]}`); status == http.StatusAccepted {
		to[posts] = true
	}
}

// walkers are the credentials that detours begin with.
func (w *accessScene) walkers() (all []credential) {
	w.t.Helper()
	for _, of := range []struct {
		prefix      string
		credentials []credential
	}{{"", w.users().credentials}, {"a key: ", w.keys().credentials}, {"an application's token: ", w.tokens().credentials}} {
		for _, c := range of.credentials {
			if c.refused == "" {
				c.name = of.prefix + c.name
				all = append(all, c)
			}
		}
	}
	for _, scope := range append(
		strings.Fields(allScopes), "developers:write orders:read", "developers:write customers:read records:write",
		"webhooks:read webhooks:write orders:read", "developers:write webhooks:read webhooks:write products:read",
	) {
		all = append(all, credential{name: "an OWNER's token: " + scope, token: w.user(issuer.Grant{Roles: []auth.Role{auth.Owner}, Scope: &scope})})
	}
	const narrow = "customers:read webhooks:read webhooks:write"
	return append(all, credential{name: "an application's token: " + narrow, token: w.token("application", narrow), application: "application"})
}

// furnishDetours makes what the detours name: an endpoint with an event of each
// kind, and one without any.
func (w *accessScene) furnishDetours() {
	w.t.Helper()
	for name, subscribed := range map[string]string{"everything": "*", "widened": "webhook.test"} {
		w.kept[name] = w.do(w.owner, "POST", "/developers/webhooks/endpoints?applicationId={application}", `{"url":"https://example.com/","events":["`+subscribed+`"]}`).ID
	}
	for _, kind := range commerce.Kinds() {
		record, err := w.Table.Record(w.t.Context(), w.Org, kind, value.MustID(w.kept[string(kind)+" of B"]))
		if err != nil {
			w.t.Fatal(err)
		}
		payloads, err := commerce.Events(nil, record)
		if err != nil {
			w.t.Fatal(err)
		}
		body, err := payloads[0].Encode()
		if err == nil {
			err = w.Table.PutPayload(w.t.Context(), w.Org, payloads[0].ID, body)
		}
		d := webhook.NewDelivery(&payloads[0], w.StoredEndpoint(w.t, value.MustID(w.kept["everything"])), "", w.Now())
		if err == nil {
			_, err = w.Table.PutDelivery(w.t.Context(), d.StoredAt(0), d)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		w.kept["history of "+string(kind)] = d.ID.String()
	}
}

// TestNobodyReachesMoreByADetour walks from each credential by what it can make,
// set or see to what that reaches: never more than the credential reaches itself.
func TestNobodyReachesMoreByADetour(t *testing.T) {
	t.Parallel()
	w := newAccessScene(t)
	w.furnishDetours()
	page, rule := &strings.Builder{}, "|---|---|"
	page.WriteString("| Credential | reaches itself |")
	for _, d := range detours() {
		page.WriteString(" " + d.name + " |")
		rule += "---|"
	}
	page.WriteString("\n" + rule + "\n")
	for _, c := range w.walkers() {
		w.application("scratch", w.Org)
		itself, found := reach{}, reach{}
		w.reachOf(&c, itself)
		row := fmt.Sprintf("| %s | %s |", c.name, itself)
		for _, d := range detours() {
			reached := reach{}
			d.take(w, &c, reached)
			for _, more := range slices.Sorted(maps.Keys(reached)) {
				if !itself[more] {
					t.Errorf("%s reaches %s by %s, and not itself", c.name, more, d.name)
				}
			}
			if c.name == "OWNER" && len(reached) == 0 {
				t.Errorf("an OWNER reaches nothing by %s: the detour leads nowhere", d.name)
			}
			maps.Copy(found, reached)
			row += " " + reached.String() + " |"
		}
		if len(found) > 0 {
			page.WriteString(row + "\n")
		}
		w.try(&credential{token: w.owner}, "DELETE", "/developers/applications/{scratch}", "")
	}
	checkGolden(t, goldenDetours, []byte(detoursIntroduction+page.String()))
}

const goldenDetours = "DETOURS.md"

const detoursIntroduction = `# Detours

A row shows a credential of [ACCESS.md](ACCESS.md), or one of several scopes, with its reach: the records that it reads in the
read API, and whether it posts records; then the same of everything that it can make, rotate, grant, authorize or subscribe, and the
records that it sees in the history of webhooks. A detour never reaches more than the credential itself;
` + "`go test ./pkg/app -run Detour -update`" + ` tries each and writes this page. A credential without a row reaches nothing by a detour.

`
