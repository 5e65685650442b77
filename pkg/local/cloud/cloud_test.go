//go:build cloud

// Package cloud_test deploys template.yaml by the SAM CLI onto MiniStack, an emulator of AWS that enforces IAM for each
// function's role, and uses the service from outside as its integrators, back offices and operators do: through API
// Gateway, the queues, a receiver of webhooks, an update and the deletion of the stack. .tools/cloud.py lists what the
// emulator needs otherwise than AWS; unproven lists what this does not show. The functions' own packages test the details.
package cloud_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/local/template"
)

// scenario is one organization on the deployed service. Its steps build on each other.
type scenario struct {
	*deployment
	organization value.ID
	nobody       client
	user         client // an OWNER
	reader       client // an API key
	application  application
	keyID        string
	receiver     *receiver
}

type application struct {
	ID           string `json:"id"`
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// Ids of the records.
const (
	product = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f01"
	order   = "0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f02"
)

func TestDeployedService(t *testing.T) {
	s := &scenario{deployment: deploy(t), organization: value.NewID(), receiver: newReceiver(t)}
	s.nobody = client{base: s.base(t), header: http.Header{}}
	s.user = s.nobody.with("Authorization", "Bearer "+s.token(t, s.organization, auth.Owner))
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"preflight", s.preflight},
		{"routes without credentials", s.routes},
		{"authorizer that cannot reach the issuer", s.issuerAway},
		{"refused credentials", s.credentials},
		{"application, made once", s.makeApplication},
		{"records", s.records},
		{"records over HTTP", s.postRecords},
		{"lists", s.lists},
		{"smoke", s.smoke},
		{"another organization", s.otherOrganization},
		{"token of the application", s.applicationToken},
		{"webhook with a retry", s.webhook},
		{"pause and recovery", s.pauseAndRecover},
		{"rotated secret", s.rotate},
		{"history and counters", s.history},
		{"queue and bus", s.queueAndBus},
		{"clients", s.clients},
		{"import by commerce", s.command},
		{"deletion of the endpoint and the application", s.remove},
		{"update of the stack", s.update},
		{"permissions", s.permissions},
		{"deletion of the stacks", s.deleteStacks},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// preflight finds that the account lacks the role of access logs, and nothing else.
func (s *scenario) preflight(t *testing.T) {
	for _, test := range []struct{ accessLogs, end string }{
		{"without-role", "missing: AccessLogs=with-role, which sets the role for the account and region\n"},
		{"with-role", "\nNothing is missing.\n"},
	} {
		out, _ := s.python(t, ".tools/preflight.py", "production", "AlarmTopicArn=arn", "AccessLogs="+test.accessLogs).CombinedOutput()
		if !strings.HasSuffix(string(out), test.end) || strings.Count(string(out), "missing") != 1 {
			t.Errorf("with AccessLogs=%s:\n%s", test.accessLogs, out)
		}
	}
}

func (s *scenario) routes(t *testing.T) {
	s.nobody.want(t, http.StatusOK, http.MethodGet, "/health", "", nil)
	s.nobody.want(t, http.StatusOK, http.MethodGet, "/openapi.json", "", &map[string]any{})
	s.nobody.want(t, http.StatusOK, http.MethodGet, "/portal", "", nil)
	s.nobody.want(t, http.StatusOK, http.MethodGet, "/portal/main.js", "", nil)
	s.nobody.refused(t, http.StatusNotFound, http.MethodGet, "/nowhere", "")
	_, header := s.nobody.refused(t, http.StatusMethodNotAllowed, http.MethodDelete, "/api/products", "")
	if allow := header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("Allow: %q, want GET, HEAD", allow)
	}
}

// An authorizer's fault is API Gateway's 503 and nothing that it would cache.
func (s *scenario) issuerAway(t *testing.T) {
	s.away.Store(true)
	p, header := s.user.refused(t, http.StatusServiceUnavailable, http.MethodGet, "/developers/applications", "")
	if p.Code != "unavailable" || header.Get("Retry-After") == "" {
		t.Errorf("%+v with %v, want unavailable with Retry-After", p, header)
	}
	s.away.Store(false)
	await(t, "the issuer's keys", func() bool {
		return s.user.do(t, http.MethodGet, "/developers/applications", "").status == http.StatusOK
	})
}

func (s *scenario) credentials(t *testing.T) {
	for name, test := range map[string]struct {
		client client
		path   string
	}{
		"none, user tokens only": {s.nobody, "/developers/webhooks/endpoints"},
		"none":                   {s.nobody, "/api/products"},
		"a key, user tokens only": {
			s.nobody.with("X-API-Key", "cis_live_Ab3dE6gHExample0Example0Example0Example00qAYPd"), "/developers/applications",
		},
		"a key of nobody": {s.nobody.with("X-API-Key", "cis_live_Ab3dE6gHExample0Example0Example0Example00qAYPd"), "/api/products"},
		"no token":        {s.nobody.with("Authorization", "Bearer x.y.z"), "/developers/applications"},
	} {
		t.Run(name, func(t *testing.T) {
			_, header := test.client.refused(t, http.StatusUnauthorized, http.MethodGet, test.path, "")
			if challenge := header.Get("WWW-Authenticate"); challenge != "Bearer" {
				t.Errorf("WWW-Authenticate: %q, want Bearer", challenge)
			}
		})
	}
	s.severalCredentials(t)
	viewer := s.nobody.with("Authorization", "Bearer "+s.token(t, s.organization, auth.Viewer))
	if p, _ := viewer.refused(t, http.StatusForbidden, http.MethodPost, "/developers/applications", `{"name":"Shop"}`); p.Code != "insufficient_scope" {
		t.Errorf("code %s, want insufficient_scope", p.Code)
	}
}

// severalCredentials sends more than one Authorization header, and then each alone: what API Gateway keeps of one request
// serves no other.
func (s *scenario) severalCredentials(t *testing.T) {
	const proxy, path = "Basic cHJveHk6cHJveHk=", "/developers/webhooks/endpoints"
	ours := "Bearer " + s.token(t, s.organization, auth.Owner)
	theirs := "Bearer " + s.token(t, value.NewID(), auth.Owner)
	as := func(values ...string) client {
		return client{base: s.nobody.base, header: http.Header{"Authorization": values}}
	}
	for range 2 {
		for _, values := range [][]string{{proxy, ours}, {proxy, theirs}, {proxy}, {ours, ours}, {theirs, ours}, {ours, proxy}, {"", ours}} {
			as(values...).refused(t, http.StatusUnauthorized, http.MethodGet, path, "")
		}
		as(ours).want(t, http.StatusOK, http.MethodGet, path, "", nil)
		as(theirs).want(t, http.StatusOK, http.MethodGet, path, "", nil)
	}
}

func (s *scenario) makeApplication(t *testing.T) {
	again := s.user.with("Idempotency-Key", "once")
	again.want(t, http.StatusCreated, http.MethodPost, "/developers/applications", `{"name":"Shop"}`, &s.application)
	var repeated application
	got := again.want(t, http.StatusCreated, http.MethodPost, "/developers/applications", `{"name":"Shop"}`, &repeated)
	if repeated != s.application || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repetition answers %+v (%v), want %+v replayed", repeated, got.header, s.application)
	}
	var made struct{ ID, Key string }
	s.user.want(t, http.StatusCreated, http.MethodPost, s.applicationPath("/api-keys"), `{"name":"Reader"}`, &made)
	s.keyID, s.reader = made.ID, s.nobody.with("X-API-Key", made.Key)
	var me struct{ OrganizationID, ApplicationID string }
	s.reader.want(t, http.StatusOK, http.MethodGet, "/api/me", "", &me)
	if me.OrganizationID != s.organization.String() || me.ApplicationID != s.application.ID {
		t.Errorf("the key is of %+v, want %s of %s", me, s.application.ID, s.organization)
	}
}

func (s *scenario) applicationPath(rest string) string {
	return "/developers/applications/" + s.application.ID + rest
}

// send sends a message to RecordsQueue.
func (s *scenario) send(t *testing.T, message string) {
	t.Helper()
	queue := s.outputs["RecordsQueueUrl"]
	if _, err := s.queues().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &message}); err != nil {
		t.Fatal(err)
	}
}

// put sends a record.
func (s *scenario) put(t *testing.T, kind, record string) {
	t.Helper()
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":%q,"op":"put","record":%s}`, s.organization, kind, record))
}

func orderOf(status string) string {
	return fmt.Sprintf(`{"id":%q,"orderNumber":"A-1","currency":"EUR","status":%q,`+
		`"items":[{"name":"Sencha 100 g","quantity":2,"unitPrice":9.9,"taxRate":7}]}`, order, status)
}

// records come in alone, and many in a large message, which goes on through ImportsQueue. The many are asked for by id
// only: the emulator writes no stream record for what PartiQL inserts, so that no list and no webhook hears of them.
func (s *scenario) records(t *testing.T) {
	s.put(t, "product", fmt.Sprintf(`{"id":%q,"name":"Sencha 100 g","sku":"TEA-1","sellingPrice":9.9}`, product))
	await(t, "the product", func() bool {
		return s.reader.do(t, http.MethodGet, "/api/products/"+product, "").status == http.StatusOK
	})

	many, last := make([]string, 40), ""
	for i := range many {
		last = value.NewID().String()
		many[i] = fmt.Sprintf(`{"kind":"product","op":"put","silent":true,"record":{"id":%q,"name":"Bancha %02d","description":%q}}`,
			last, i, strings.Repeat("leaf ", 200))
	}
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, s.organization, strings.Join(many, ",")))
	await(t, "the last of many", func() bool { return s.reader.do(t, http.MethodGet, "/api/products/"+last, "").status == http.StatusOK })

	// The adjustment goes into the ledger, and later from there into the record.
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"records":[{"kind":"stock","op":"put","silent":true,"record":{"productId":%q,"onHand":9}},`+
		`{"kind":"stock","op":"adjust","record":{"productId":%q,"delta":-2,"adjustmentId":"a"}}]}`, s.organization, last, last))
	await(t, "the adjusted stock", func() bool {
		return strings.Contains(string(s.reader.do(t, http.MethodGet, "/api/stock?productId="+last, "").body), `"onHand":7`)
	})

	s.put(t, "product", `{"id":"no id","name":"Refused"}`)
	dead := s.outputs["RecordsDLQUrl"]
	await(t, "the refused record", func() bool {
		out, err := s.queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, MessageAttributeNames: []string{"All"}})
		return err == nil && len(out.Messages) == 1 && *out.Messages[0].MessageAttributes["field"].StringValue == "record.id"
	})
}

// postRecords posts one good record and one that is refused. Both are silent, and no list counts them.
func (s *scenario) postRecords(t *testing.T) {
	body := fmt.Sprintf(`{"records":[{"kind":"invoice","op":"delete","record":{"id":%q}},{"kind":"invoice","op":"put","silent":true,"record":{"id":%q}}]}`,
		value.NewID(), value.NewID())
	var made, r receipt.Receipt
	s.user.with("Idempotency-Key", "post").want(t, http.StatusAccepted, http.MethodPost, "/ingest/records", body, &made)
	await(t, "the receipt", func() bool {
		s.user.want(t, http.StatusOK, http.MethodGet, "/ingest/receipts/"+made.ID.String(), "", &r)
		return r.Status == receipt.Completed
	})
	if r.AcceptedCount != 1 || r.RefusedCount != 1 || r.Refusals[0].Field != "records[1].record.currency" {
		t.Errorf("got %+v, want the second refused for its currency", r)
	}
	var all page
	await(t, "the receipt in the list", func() bool {
		s.user.want(t, http.StatusOK, http.MethodGet, "/ingest/receipts", "", &all)
		return len(all.Data) == 2 && all.Data[0].ID == made.ID.String() // before that of the queue's refused record
	})
}

// page is an answered page of a list.
type page struct {
	Data []struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Type   string `json:"type"`
		Status string `json:"status"`
		Count  int    `json:"attemptCount"`
	} `json:"data"`
	Meta struct {
		Total int `json:"total"`
	} `json:"meta"`
}

func (s *scenario) lists(t *testing.T) {
	await(t, "the product in its list", func() bool {
		var p page
		s.reader.want(t, http.StatusOK, http.MethodGet, "/api/products?search=sencha&sku=tea-1&orderBy=sellingPrice", "", &p)
		return p.Meta.Total == 1 && p.Data[0].ID == product
	})
	got := s.reader.want(t, http.StatusOK, http.MethodGet, "/api/products/"+product, "", nil)
	unchanged := s.reader.with("If-None-Match", got.header.Get("ETag"))
	unchanged.want(t, http.StatusNotModified, http.MethodGet, "/api/products/"+product, "", nil)
	if refused, _ := s.reader.refused(t, http.StatusBadRequest, http.MethodGet, "/api/products?limit=500", ""); refused.Code != "validation_failed" {
		t.Errorf("code %s, want validation_failed", refused.Code)
	}
}

// smoke asks what an operator asks after a deployment.
func (s *scenario) smoke(t *testing.T) {
	cmd := s.python(t, ".tools/smoke.py", s.base(t))
	cmd.Env = append(cmd.Env, "KEY="+s.reader.header.Get("X-API-Key"), "TOKEN="+s.token(t, s.organization, auth.Owner))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// otherOrganization tries to reach what is not its own.
func (s *scenario) otherOrganization(t *testing.T) {
	other := s.nobody.with("Authorization", "Bearer "+s.token(t, value.NewID(), auth.Owner))
	var p page
	other.want(t, http.StatusOK, http.MethodGet, "/api/products", "", &p)
	if p.Meta.Total != 0 {
		t.Errorf("another organization lists %d products", p.Meta.Total)
	}
	for _, path := range []string{"/api/products/" + product, s.applicationPath("")} {
		other.refused(t, http.StatusNotFound, http.MethodGet, path, "")
	}
}

func (s *scenario) applicationToken(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte(s.application.ClientID + ":" + s.application.ClientSecret))
	form := s.nobody.with("Authorization", "Basic "+basic, "Content-Type", "application/x-www-form-urlencoded")
	var granted struct {
		Token string `json:"access_token"`
	}
	form.want(t, http.StatusOK, http.MethodPost, "/oauth/token", url.Values{"grant_type": {"client_credentials"}}.Encode(), &granted)
	machine := s.nobody.with("Authorization", "Bearer "+granted.Token)
	machine.want(t, http.StatusOK, http.MethodGet, "/api/products/"+product, "", nil)
	machine.refused(t, http.StatusForbidden, http.MethodGet, "/developers/webhooks/endpoints", "")
	var keys struct{ Keys []any }
	if s.nobody.want(t, http.StatusOK, http.MethodGet, "/.well-known/jwks.json", "", &keys); len(keys.Keys) == 0 {
		t.Error("the key that signs tokens is not published")
	}
}

// clients runs the tests of pkg/client, which use the service as the application and as its owner.
func (s *scenario) clients(t *testing.T) {
	run, err := json.Marshal(map[string]string{
		"baseUrl": s.base(t), "applicationId": s.application.ID, "clientId": s.application.ClientID,
		"clientSecret": s.application.ClientSecret, "jwt": s.token(t, s.organization, auth.Owner),
	})
	if err != nil {
		t.Fatal(err)
	}
	described := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(described, run, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := exec.CommandContext(t.Context(), "make", "test-clients", "COMMERCE_RUN="+described)
	tests.Dir = file(t, ".")
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// command has commerce import a file over HTTP: it ends when the service has stored and listed all.
func (s *scenario) command(t *testing.T) {
	articles := filepath.Join(t.TempDir(), "articles.csv")
	if err := os.WriteFile(articles, []byte("sku,name,sellingPrice\nCLOUD-1,Sencha,9.90\nCLOUD-2,Assam,free\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mapping := filepath.Join(t.TempDir(), "mapping.json")
	if err := os.WriteFile(mapping, []byte(`{"kind":"product","idFrom":"sku","columns":{"sku":"sku","name":"name","sellingPrice":"sellingPrice"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	imports := exec.CommandContext(t.Context(), "go", "run", "./pkg/cmd/commerce", "import", "--mapping", mapping,
		"--url", s.base(t), "--token", s.token(t, s.organization, auth.Owner), articles)
	imports.Dir = file(t, ".")
	out, err := imports.Output()
	if !strings.Contains(string(out), "accepted  1\nrejected  1\n") {
		t.Errorf("got %s, %v; want one record accepted and one refused", out, err)
	}
}

// permissions compares what the functions did with what template.yaml permits them.
func (s *scenario) permissions(t *testing.T) {
	await(t, "the sweeper's minute", func() bool { return slices.Contains(s.calls.taken("sweeper"), "dynamodb:Query") })
	for _, refusal := range s.calls.refusals() {
		t.Errorf("refused: %s", refusal)
	}
	model, err := template.Load(filepath.Join(root, "template.yaml"), map[string]string{"JwtIssuer": "test", "JwtAudience": "test"})
	if err != nil {
		t.Fatal(err)
	}
	for name, function := range model.Functions {
		known := slices.Concat(s.calls.taken(name), unproven()[name], byLambda())
		missing := map[string]bool{}
		for _, p := range function.Permissions {
			missing[p.Action] = !slices.Contains(known, p.Action)
		}
		for action, isMissing := range missing {
			if isMissing {
				t.Errorf("%s may %s: no step takes this action, and it is not listed as unproven", name, action)
			}
		}
	}
}

// byLambda are actions that Lambda takes for a function. The emulator hands out messages and stream records without them.
func byLambda() []string {
	return []string{
		"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
		"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams",
	}
}

// unproven are the actions that no step brings a function to take: what they are for does not happen within a minute of a
// service that is well. make emulate shows that each is linked into its function.
func unproven() map[string][]string {
	return map[string][]string{
		"authorizer": {"secretsmanager:GetSecretValue"},                                    // the secret of HS256 tokens, which are not used here
		"api":        {"dynamodb:PutItem", "sqs:SendMessage"},                              // the rebuild of a list
		"ingest":     {"sqs:ChangeMessageVisibility"},                                      // messages that failed by our own fault
		"dispatcher": {"dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}, // large batches; filtered events
		"webhooks":   {"dynamodb:DeleteItem"},                                              // idempotency keys that are given up
		"receipts":   {"dynamodb:DeleteItem"},                                              // likewise
		"developers": {"dynamodb:BatchGetItem"},                                            // the usage of an application
		"worker": { // what no message carries, a 410, a second retry
			"dynamodb:BatchGetItem", "dynamodb:UpdateItem", "sqs:ChangeMessageVisibility",
		},
		"indexer": {"dynamodb:UpdateItem", "sqs:SendMessage"}, // circuits, the park
		"sweeper": { // what comes due: long retries, probes, index jobs
			"dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "sqs:SendMessage",
		},
	}
}

// update changes a parameter of the stack: the functions follow, and what is stored stays.
func (s *scenario) update(t *testing.T) {
	decode(t, s.tool(t, "deploy", s.parameters("ThrottleRate=1", "ThrottleBurst=1")...), &s.outputs)
	s.nobody.base, s.user.base = s.base(t), s.base(t)
	await(t, "a throttled request", func() bool {
		got := s.user.do(t, http.MethodGet, "/developers/applications", "")
		var p problem
		decode(t, got.body, &p)
		return got.status == http.StatusTooManyRequests && p.Code == "rate_limited" && got.header.Get("Retry-After") == "1"
	})
	await(t, "the product after the update", func() bool {
		return s.user.do(t, http.MethodGet, "/api/products/"+product, "").status == http.StatusOK
	})
}

// deleteStacks leaves the table, which outlives its stack.
func (s *scenario) deleteStacks(t *testing.T) {
	s.tool(t, "delete")
	if got := s.nobody.do(t, http.MethodGet, "/health", ""); got.status < http.StatusBadRequest {
		t.Errorf("the API answers %d", got.status)
	}
	stored, err := s.store().Record(t.Context(), s.organization, commerce.KindProduct, value.MustID(product))
	if err != nil || stored == nil {
		t.Errorf("the product is gone from the table: %v", err)
	}
}
