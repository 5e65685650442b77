package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/commerce-integration/service/pkg/api/tools"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/local/issuer"
)

// withHeader sends a header with each request.
type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return http.DefaultTransport.RoundTrip(r)
}

// agent is a client of the tools.
type agent struct {
	*mcp.ClientSession
	t *testing.T
}

// agent connects with a key, or else a token.
func (w *accessScene) agent(t *testing.T, key, token string) *agent {
	t.Helper()
	credential := withHeader{"Authorization", "Bearer " + token}
	if key != "" {
		credential = withHeader{"X-API-Key", key}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.url + "/mcp", HTTPClient: &http.Client{Transport: credential}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return &agent{session, t}
}

// call answers the tool's text, and whether it is a refusal.
func (a *agent) call(tool string, arguments map[string]any) (text string, refused bool) {
	a.t.Helper()
	answer, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	return answer.Content[0].(*mcp.TextContent).Text, answer.IsError
}

type found struct {
	Rows []map[string]any    `json:"data"`
	Meta struct{ Total int } `json:"meta"`
}

func (a *agent) rows(tool string, arguments map[string]any) (f found) {
	a.t.Helper()
	text, refused := a.call(tool, arguments)
	if err := json.Unmarshal([]byte(text), &f, json.MatchCaseInsensitiveNames(true)); refused || err != nil {
		a.t.Fatalf("%s %v: %s, %v", tool, arguments, text, err)
	}
	return f
}

func TestToolsAreListedForWhomTheyServe(t *testing.T) {
	w := newAccessScene(t)
	records, all := []string{"changes", "describe", "get", "search"}, []string{"changes", "deliveries", "describe", "get", "search", "trace"}
	for name, test := range map[string]struct {
		key, token string
		want       []string
	}{
		"a key":                 {w.key("application", "").Key, "", records},
		"a token for webhooks":  {"", w.token("application", "orders:read webhooks:read"), all},
		"a token without":       {"", w.token("application", "orders:read"), records},
		"a user":                {"", w.owner, all},
		"a user of some sites":  {"", w.user(issuer.Grant{SiteIDs: []value.ID{value.MustID(siteA)}}), records},
		"a token that may post": {"", w.token("application", "records:write orders:read"), records},
	} {
		t.Run(name, func(t *testing.T) {
			listed, err := w.agent(t, test.key, test.token).ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range listed.Tools {
				got = append(got, tool.Name)
				if !tool.Annotations.ReadOnlyHint {
					t.Errorf("%s does not say that it only reads", tool.Name)
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestToolsAnswerWhatTheirOperationsDo(t *testing.T) {
	w := newAccessScene(t)
	a := w.agent(t, "", w.owner)
	order := w.kept["order of A"]

	if text, refused := a.call("describe", nil); refused || !strings.Contains(text, `"invoice":`) {
		t.Errorf("describe: %s", text)
	}
	if text, refused := a.call("describe", map[string]any{"kind": "order"}); refused || !strings.Contains(text, `"paymentStatus"`) || !strings.Contains(text, `"minTotal"`) {
		t.Errorf("describe of orders: %s", text)
	}
	for _, kind := range commerce.Kinds() {
		id := w.kept[string(kind)+" of A"]
		f := a.rows("search", map[string]any{"kind": kind, "filters": map[string]any{"ids": id}})
		if f.Meta.Total != 1 || f.Rows[0]["id"] != id || slices.Contains(slices.Collect(values(f.Rows[0])), nil) || f.Rows[0]["organizationId"] != nil {
			t.Errorf("search of %s: %+v", kind, f)
		}
	}
	if f := a.rows("search", map[string]any{"kind": "order", "search": "Ada", "filters": map[string]any{"minTotal": "1.5", "siteId": siteA}, "limit": 1}); f.Meta.Total < 1 || len(f.Rows) != 1 {
		t.Errorf("a filtered search: %+v", f)
	}
	if text, refused := a.call("get", map[string]any{"kind": "order", "id": order}); refused || !strings.Contains(text, "items") || strings.Contains(text, "null") {
		t.Errorf("get: %s", text)
	}
	if text, refused := a.call("get", map[string]any{"kind": "order", "id": order, "fields": []string{"total"}}); refused || !strings.HasPrefix(text, `{"total":`) {
		t.Errorf("get of a field: %s", text)
	}
	var feed struct {
		Data []struct{ ID string }
		Meta struct {
			Next string
			More bool
		}
	}
	seen := map[string]bool{}
	for feed.Meta.More = true; feed.Meta.More; {
		text, refused := a.call("changes", map[string]any{"after": feed.Meta.Next, "kinds": "order,product", "limit": 2})
		feed.Data = nil
		if err := json.Unmarshal([]byte(text), &feed, json.MatchCaseInsensitiveNames(true)); refused || err != nil {
			t.Fatalf("changes: %s, %v", text, err)
		}
		for _, c := range feed.Data {
			seen[c.ID] = true
		}
	}
	if !seen[order] || !seen[w.kept["product of B"]] || seen[w.kept["customer of A"]] {
		t.Errorf("changes showed %v", seen)
	}
	if f := a.rows("deliveries", map[string]any{"limit": 50}); f.Meta.Total == 0 || f.Rows[0]["endpointId"] == nil {
		t.Errorf("deliveries: %+v", f)
	}
	if text, refused := a.call("trace", map[string]any{"objectId": order}); refused || !strings.Contains(text, `"kind":"order"`) || strings.Contains(text, "null") {
		t.Errorf("trace: %s", text)
	}
}

func values(m map[string]any) func(yield func(any) bool) {
	return func(yield func(any) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestToolsRefuseAsTheirOperationsDo(t *testing.T) {
	w := newAccessScene(t)
	order := w.kept["order of B"]
	owner := w.agent(t, "", w.owner)
	orders := w.agent(t, w.key("application", `,"scopes":["orders:read"]`).Key, "")
	ofSite := w.agent(t, w.key("application", `,"siteIds":["`+siteA+`"]`).Key, "")
	stranger := w.agent(t, "", w.token("stranger", ""))
	get := map[string]any{"kind": "order", "id": order}
	absent, _ := stranger.call("get", map[string]any{"kind": "order", "id": value.NewID().String()})
	for name, test := range map[string]struct {
		by        *agent
		tool      string
		arguments map[string]any
		want      string
	}{
		"a missing scope":              {orders, "search", map[string]any{"kind": "product"}, "products:read"},
		"another site by id":           {ofSite, "get", get, `"code":"not_found"`},
		"another site by filter":       {ofSite, "search", map[string]any{"kind": "order", "filters": map[string]any{"siteId": siteB}}, "site_forbidden"},
		"another organization":         {stranger, "get", get, `"code":"not_found"`},
		"another organization's trace": {stranger, "trace", map[string]any{"objectId": order}, `"code":"not_found"`},
		"an unknown filter":            {owner, "search", map[string]any{"kind": "order", "filters": map[string]any{"colour": "red"}}, "colour"},
		"a wrong value":                {owner, "search", map[string]any{"kind": "order", "filters": map[string]any{"status": "LOST"}}, "CONFIRMED"},
		"an unknown kind":              {owner, "search", map[string]any{"kind": "parcel"}, "must be one of product"},
		"an unknown argument":          {owner, "search", map[string]any{"kind": "order", "colour": "red"}, "colour"},
		"an id that is none":           {owner, "get", map[string]any{"kind": "order", "id": "../products"}, "UUID"},
		"an unknown field":             {owner, "get", map[string]any{"kind": "order", "id": order, "fields": []string{"colour"}}, "colour"},
		"too many rows":                {owner, "search", map[string]any{"kind": "order", "limit": 51}, "limit"},
		"too few rows":                 {owner, "search", map[string]any{"kind": "order", "limit": -1}, "limit"},
		"too many events":              {owner, "trace", map[string]any{"objectId": order, "limit": 51}, "limit"},
		"a cursor that is none":        {owner, "changes", map[string]any{"after": "x"}, "after"},
		"a tool of others":             {orders, "trace", map[string]any{"objectId": order}, "trace"},
		"an unknown tool":              {owner, "delete", nil, "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, refused := test.by.call(test.tool, test.arguments); !refused || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want a refusal that says %s", text, test.want)
			}
		})
	}
	others, _ := stranger.call("get", get)
	if code := func(text string) string { return strings.Split(text, "requestId")[0] }; code(others) != code(absent) {
		t.Errorf("another organization's order is answered %s, an absent one %s", others, absent)
	}
	if f := owner.rows("search", map[string]any{"kind": "order", "filters": map[string]any{"limit": "100"}, "limit": 1}); len(f.Rows) != 1 {
		t.Errorf("a limit among the filters gave %d rows, want 1", len(f.Rows))
	}
}

func TestToolsShowPersonalFieldsToWhoMayReadCustomers(t *testing.T) {
	w := newAccessScene(t)
	both := w.agent(t, w.key("application", `,"scopes":["orders:read","customers:read"]`).Key, "")
	orders := w.agent(t, w.key("application", `,"scopes":["orders:read"]`).Key, "")
	ids := map[string]any{"kind": "order", "filters": map[string]any{"ids": w.kept["order of A"]}}
	for tool, arguments := range map[string]map[string]any{
		"search": ids, "get": {"kind": "order", "id": w.kept["order of A"]}, "changes": {"kinds": "order"}, "describe": {"kind": "order"},
	} {
		personal := []string{"customerName", "customerEmail"}
		if tool != "describe" {
			personal = append(personal, "Okafor")
		}
		for _, word := range personal {
			if text, _ := both.call(tool, arguments); !strings.Contains(text, word) {
				t.Errorf("%s with customers:read has no %s: %s", tool, word, text)
			}
			if text, refused := orders.call(tool, arguments); refused || strings.Contains(text, word) {
				t.Errorf("%s without customers:read shows %s: %s", tool, word, text)
			}
		}
	}
	for name, arguments := range map[string]map[string]any{
		"search":    {"kind": "order", "search": "Ada"},
		"filter":    {"kind": "order", "filters": map[string]any{"search": "Ada"}},
		"own field": {"kind": "order", "filters": map[string]any{"metadata[erpId]": "1"}},
		"has":       {"kind": "order", "filters": map[string]any{"has": "metadata.erpId"}},
	} {
		if text, refused := orders.call("search", arguments); !refused || !strings.Contains(text, "customers:read") {
			t.Errorf("%s without customers:read: %s", name, text)
		}
	}
	if text, refused := orders.call("get", map[string]any{"kind": "order", "id": w.kept["order of A"], "fields": []string{"customerName"}}); !refused {
		t.Errorf("a personal field by its name: %s", text)
	}
}

func TestAToolThatWouldAnswerTooMuchSaysHowToAskForLess(t *testing.T) {
	w := newAccessScene(t)
	a := w.agent(t, "", w.owner)
	for _, size := range []int{tools.MaxAnswer - 2_000, tools.MaxAnswer} {
		id := value.NewID().String()
		w.Put(t, commerce.KindProduct, nil, fmt.Sprintf(`{"id":%q,"name":"x","description":%q}`, id, strings.Repeat("x", size)), nil)
		text, refused := a.call("get", map[string]any{"kind": "product", "id": id})
		if large := size == tools.MaxAnswer; refused != large || large && !strings.Contains(text, "in fields") {
			t.Errorf("%d bytes: refused %v, %.300s", size, refused, text)
		}
		if text, refused := a.call("get", map[string]any{"kind": "product", "id": id, "fields": []string{"name"}}); refused {
			t.Errorf("one field of %d bytes: %s", size, text)
		}
	}
}

func TestTheTransportTakesOneMessageAndHoldsNothing(t *testing.T) {
	w := newAccessScene(t)
	key := w.key("application", "").Key
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for name, test := range map[string]struct {
		method, body string
		header       http.Header
		status       int
		want         string
	}{
		"a message":              {"POST", list, nil, 200, `"inputSchema"`},
		"whose answer it is":     {"POST", list, nil, 200, `"cacheScope":"private"`},
		"a notification":         {"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		"a batch":                {"POST", "[" + list + "," + list + "]", nil, 400, "not a batch"},
		"no JSON":                {"POST", "{", nil, 400, `"code":"validation_failed"`},
		"nothing":                {"POST", "", nil, 415, "application/json"},
		"too much":               {"POST", `"` + strings.Repeat("x", 256<<10) + `"`, nil, 413, "262144"},
		"no stream":              {"GET", "", nil, 405, "POST"},
		"no session":             {"DELETE", "", nil, 405, "POST"},
		"a narrow Accept":        {"POST", list, http.Header{"Accept": {"application/json"}}, 400, "text/event-stream"},
		"an unknown version":     {"POST", list, http.Header{"Mcp-Protocol-Version": {"2020-01-01"}}, 400, "nsupported protocol version"},
		"a foreign page":         {"POST", list, http.Header{"Origin": {"https://evil.example.com"}}, 403, "Origin"},
		"a page of this machine": {"POST", list, http.Header{"Origin": {"http://localhost:6274"}}, 200, `"inputSchema"`},
		"a stream of changes": {"POST", listen, http.Header{
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
		}, 200, `"result"`},
		"a site that the key covers": {"POST", list, http.Header{"X-Site-Id": {siteA}}, 200, `"inputSchema"`},
		"a site that is none":        {"POST", list, http.Header{"X-Site-Id": {"x"}}, 400, "X-Site-Id"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{"X-Api-Key": {key}, "Accept": {"application/json, text/event-stream"}}
			if test.body != "" {
				header.Set("Content-Type", "application/json")
			}
			for name, values := range test.header {
				header[name] = values
			}
			if status, body := w.send(test.method, "/mcp", test.body, header); status != test.status || !strings.Contains(body, test.want) {
				t.Errorf("got %d %s, want %d with %s", status, body, test.status, test.want)
			}
		})
	}
}
