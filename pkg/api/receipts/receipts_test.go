package receipts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/api"
	"github.com/commerce-integration/service/pkg/api/idempotency"
	"github.com/commerce-integration/service/pkg/api/receipts"
	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/fault"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/receipt"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// harness serves the operations on the real table and queue.
type harness struct {
	*servicetest.Service
	server *api.Server
	queue  *faultyQueue
	caller auth.Principal
}

// faultyQueue loses the message, or its answer.
type faultyQueue struct {
	queue.Posts
	lost, unanswered bool
}

func (q *faultyQueue) Send(ctx context.Context, org, id value.ID, message []byte) error {
	if q.lost {
		return fault.Busy(errors.New("the queue is away"))
	}
	err := q.Posts.Send(ctx, org, id, message)
	if q.unanswered {
		return fault.Busy(errors.New("no answer"))
	}
	return err
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := servicetest.New(t)
	h := &harness{Service: s, queue: &faultyQueue{Posts: queue.NewPosts(s.Queues().Queue("RecordsQueue"))}}
	h.caller = auth.Principal{Kind: auth.KindUser, OrganizationID: s.Org, UserID: value.NewID(), Scopes: auth.Admin.Scopes()}
	h.server = api.NewServer(receipts.Operations(s.Table, h.queue, s.Time), api.Config{
		Caller: func(*http.Request) api.Caller {
			return api.Caller{BaseURL: "https://x.test/prod", Principal: h.caller}
		},
		Limiter: servicetest.Unlimited{}, Idempotency: idempotency.New(s.Table, s.Box, s.Time), Clock: s.Time, Logger: s.Leaks.Logger(),
	})
	return h
}

// ask makes a request and reads its answer into v unless that is nil.
func (h *harness) ask(t *testing.T, method, path, body, key string, v any) servicetest.Answer {
	t.Helper()
	var headers []string
	if key != "" {
		headers = append(headers, "Idempotency-Key", key)
	}
	a := h.AskJSON(h.server, method, path, body, headers...)
	if v != nil {
		if err := json.Unmarshal([]byte(a.Body), v); err != nil {
			t.Fatalf("%d %s: %v", a.Status, a.Body, err)
		}
	}
	return a
}

func (h *harness) post(t *testing.T, body, key string) (status int, r receipt.Receipt) {
	t.Helper()
	answer := h.ask(t, http.MethodPost, "/ingest/records", body, key, &r)
	return answer.Status, r
}

// sent takes the messages out of the queue.
func (h *harness) sent(t *testing.T) []events.SQSMessage {
	t.Helper()
	messages := h.Queues().Receive(t, "RecordsQueue")
	h.Queues().Delete(t, "RecordsQueue", messages...)
	return messages
}

func record() string {
	return fmt.Sprintf(`{"kind":"product","op":"put","record":{"id":%q,"name":"Tea"}}`, value.NewID())
}

// bodyOf is a request of so many records, of so many bytes unless that is 0.
func bodyOf(records, size int) string {
	all := make([]string, records)
	for i := range all {
		all[i] = record()
	}
	body := `{"records":[` + strings.Join(all, ",") + `]}`
	return body + strings.Repeat(" ", max(0, size-len(body)))
}

func TestPostedRecordsGoToTheQueueWithTheirReceipt(t *testing.T) {
	h := newHarness(t)
	one := record()
	var made receipt.Receipt
	answer := h.ask(t, http.MethodPost, "/ingest/records", `{"records":[`+one+`]}`, "", &made)
	if answer.Status != http.StatusAccepted || answer.Header.Get("Location") != "https://x.test/prod/ingest/receipts/"+made.ID.String() ||
		made.Status != receipt.Pending || made.RecordCount != 1 || made.CompletedAt != nil || made.ExpiresAt != made.CreatedAt.Add(receipt.Retention) {
		t.Errorf("got %d %v %+v", answer.Status, answer.Header, made)
	}
	messages := h.sent(t)
	if len(messages) != 1 {
		t.Fatalf("%d messages, want 1", len(messages))
	}
	m := messages[0]
	if want := fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, h.Org, one); m.Body != want ||
		*m.MessageAttributes[receipt.Attribute].StringValue != made.ID.String() || m.Attributes["MessageGroupId"] != h.Org.String() {
		t.Errorf("sent %+v, want %s", m, want)
	}
	var read receipt.Receipt
	if answer := h.ask(t, http.MethodGet, "/ingest/receipts/"+made.ID.String(), "", "", &read); answer.Status != http.StatusOK || read.ID != made.ID {
		t.Errorf("got %d %+v", answer.Status, read)
	}
	h.Pass(receipt.Retention)
	if answer := h.ask(t, http.MethodGet, "/ingest/receipts/"+made.ID.String(), "", "", nil); answer.Status != http.StatusNotFound {
		t.Errorf("after 7 days: got %d", answer.Status)
	}
}

func TestARequestKeepsItsLimits(t *testing.T) {
	h := newHarness(t)
	for name, row := range map[string]struct {
		body   string
		status int
	}{
		"one record":         {bodyOf(1, 0), http.StatusAccepted},
		"no record":          {bodyOf(0, 0), http.StatusBadRequest},
		"500 records":        {bodyOf(500, 0), http.StatusAccepted},
		"501 records":        {bodyOf(501, 0), http.StatusBadRequest},
		"256 KiB":            {bodyOf(2, api.MaxBody), http.StatusAccepted},
		"256 KiB and a byte": {bodyOf(2, api.MaxBody+1), http.StatusRequestEntityTooLarge},
		"version 0":          {strings.Replace(bodyOf(1, 0), `"op"`, `"version":0,"op"`, 1), http.StatusAccepted},
		"version -1":         {strings.Replace(bodyOf(1, 0), `"op"`, `"version":-1,"op"`, 1), http.StatusBadRequest},
		"nothing":            {"", http.StatusUnsupportedMediaType},
		"its organization":   {fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, strings.ToUpper(h.Org.String()), record()), http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			answer := h.ask(t, http.MethodPost, "/ingest/records", row.body, "", nil)
			if answer.Status != row.status {
				t.Errorf("got %d, want %d", answer.Status, row.status)
			}
			if sent := len(h.sent(t)); (sent == 1) != (row.status == http.StatusAccepted) {
				t.Errorf("%d messages were sent", sent)
			}
		})
	}
}

func TestAWrongEnvelopeIsRefusedByItsPath(t *testing.T) {
	h := newHarness(t)
	good, other := record(), value.NewID()
	for name, row := range map[string]struct{ body, fields string }{
		"a kind":                 {`{"records":[` + good + `,{"kind":"basket","op":"put","record":{"id":"` + other.String() + `"}}]}`, "records[1].kind"},
		"several":                {`{"records":[{"kind":"order","op":"put"},` + good + `,{"kind":"order","op":"mend","record":{}},7]}`, "records[0].record records[2].op records[3]"},
		"no id":                  {`{"records":[{"kind":"order","op":"put","record":{}}]}`, "records[0].record.id"},
		"another organization":   {fmt.Sprintf(`{"organizationId":%q,"records":[%s]}`, other, good), "organizationId"},
		"a record of another":    {fmt.Sprintf(`{"records":[{"kind":"order","op":"put","record":{"id":%q,"organizationId":%q}}]}`, other, other), "records[0].record.organizationId"},
		"an organization inside": {fmt.Sprintf(`{"records":[{"organizationId":%q,%s]}`, h.Org, good[1:]), "records[0].organizationId"},
		"sites of an order":      {`{"records":[{"kind":"order","op":"put","siteIds":[],"record":{"id":"` + other.String() + `"}}]}`, "records[0].siteIds"},
		"a number for no double": {`{"records":[` + good + `,{"kind":"order","op":"put","record":{"id":"` + other.String() + `","metadata":{"a":-1e400}}}]}`, "records[1].record.metadata.a"},
		"one record alone":       {good, "records"},
		"twice":                  {`{"records":[` + good + `],"records":[` + good + `]}`, "records"},
		"an unknown member":      {`{"records":[` + good + `],"silent":true}`, "silent"},
		"no list":                {`{"records":{}}`, "records"},
		"a list":                 {`[]`, "body"},
		"no JSON":                {`{"records":[`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p api.Problem
			answer := h.ask(t, http.MethodPost, "/ingest/records", row.body, "", &p)
			fields := make([]string, len(p.Details))
			for i, d := range p.Details {
				fields[i] = d.Field
			}
			if got := strings.Join(fields, " "); answer.Status != http.StatusBadRequest || got != row.fields || p.Message == "" {
				t.Errorf("got %d %q %s, want 400 %q", answer.Status, got, p.Message, row.fields)
			}
			if sent := h.sent(t); len(sent) != 0 {
				t.Errorf("%d messages were sent", len(sent))
			}
		})
	}
}

// refuse makes the receipt of a message of the queue with a refused record.
func (h *harness) refuse(t *testing.T) value.ID {
	t.Helper()
	now := value.TimeOf(h.Time())
	s := receipt.NewQueued(h.Org, []byte(t.Name()), 1, now, now).Complete([]receipt.Refusal{{Code: "validation_failed"}}, now)
	if err := h.Table.CreateReceipt(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s.Receipt.ID
}

func TestAReceiptIsOfItsOrganizationAndItsApplication(t *testing.T) {
	h := newHarness(t)
	user := h.caller
	application := auth.Principal{Kind: auth.KindApplication, OrganizationID: h.Org, ApplicationID: value.NewID(), Scopes: auth.Scopes{auth.RecordsWrite}}
	_, ofUser := h.post(t, bodyOf(1, 0), "")
	h.caller = application
	_, ofApplication := h.post(t, bodyOf(1, 0), "")
	queued := h.refuse(t)
	neighbour, stranger, strangers := application, user, application
	neighbour.ApplicationID, stranger.OrganizationID, strangers.OrganizationID = value.NewID(), value.NewID(), value.NewID()
	viewer, key := user, application
	viewer.Scopes, key.Kind = auth.Viewer.Scopes(), auth.KindKey
	for name, row := range map[string]struct {
		caller              auth.Principal
		ofUser, ofApplicant int
	}{
		"the user":                             {user, 200, 200},
		"the application":                      {application, 404, 200},
		"another application":                  {neighbour, 404, 404},
		"a user of another organization":       {stranger, 404, 404},
		"the application, somewhere else":      {strangers, 404, 404},
		"a viewer":                             {viewer, 403, 403},
		"a key, whatever its scopes":           {key, 403, 403},
		"a developer, who may not post either": {auth.Principal{Kind: auth.KindUser, OrganizationID: h.Org, Scopes: auth.DeveloperRole.Scopes()}, 403, 403},
	} {
		t.Run(name, func(t *testing.T) {
			h.caller = row.caller
			nobodys := http.StatusNotFound
			if row.ofUser == http.StatusForbidden {
				nobodys = row.ofUser
			}
			for id, want := range map[value.ID]int{ofUser.ID: row.ofUser, queued: row.ofUser, ofApplication.ID: row.ofApplicant, value.NewID(): nobodys} {
				if got := h.ask(t, http.MethodGet, "/ingest/receipts/"+id.String(), "", "", nil).Status; got != want {
					t.Errorf("%s: got %d, want %d", id, got, want)
				}
			}
		})
	}
}

// listed walks through the list, and tells the ids and how many refusals each shows.
func (h *harness) listed(t *testing.T, query string) (ids []value.ID, refusals []int) {
	t.Helper()
	for before := ""; ; {
		var page receipts.Receipts
		if answer := h.ask(t, http.MethodGet, "/ingest/receipts?"+query+before, "", "", &page); answer.Status != http.StatusOK {
			t.Fatalf("got %d", answer.Status)
		}
		for _, r := range page.Data {
			ids, refusals = append(ids, r.ID), append(refusals, len(r.Refusals))
		}
		if page.Meta.Next == nil {
			return ids, refusals
		}
		before = "&before=" + page.Meta.Next.String()
	}
}

func TestAListHasTheReceiptsThatTheCallerMaySee(t *testing.T) {
	h := newHarness(t)
	user := h.caller
	application := auth.Principal{Kind: auth.KindApplication, OrganizationID: h.Org, ApplicationID: value.NewID(), Scopes: auth.Scopes{auth.RecordsWrite}}
	var all, own []value.ID
	for i := range 30 {
		h.caller = user
		if i%10 == 0 {
			h.caller = application
		}
		_, made := h.post(t, bodyOf(1, 0), "")
		all = append(all, made.ID)
		if i%10 == 0 {
			own = append(own, made.ID)
		}
	}
	all = append(all, h.refuse(t))
	newestFirst := func(a, b value.ID) int { return b.Compare(a) }
	slices.SortFunc(all, newestFirst)
	slices.SortFunc(own, newestFirst)
	neighbour, stranger, viewer := application, user, user
	neighbour.ApplicationID, stranger.OrganizationID, viewer.Scopes = value.NewID(), value.NewID(), auth.Viewer.Scopes()
	for name, row := range map[string]struct {
		caller auth.Principal
		want   []value.ID
	}{
		"the user":                       {user, all},
		"the application":                {application, own},
		"another application":            {neighbour, nil},
		"a user of another organization": {stranger, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h.caller = row.caller
			if got, _ := h.listed(t, "limit=4"); !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
	h.caller = viewer
	if answer := h.ask(t, http.MethodGet, "/ingest/receipts", "", "", nil); answer.Status != http.StatusForbidden {
		t.Errorf("a viewer: got %d", answer.Status)
	}
}

func TestAListShowsTheFirstRefusalOfEachReceipt(t *testing.T) {
	h := newHarness(t)
	refused := receipt.New(h.Org, value.ID{}, nil, 3, value.TimeOf(h.Time()))
	if err := h.Table.CreateReceipt(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	if err := h.Table.CompleteReceipt(t.Context(), refused.Complete(make([]receipt.Refusal, 2), value.TimeOf(h.Time()))); err != nil {
		t.Fatal(err)
	}
	_, whole := h.post(t, bodyOf(1, 0), "")
	ids, refusals := h.listed(t, "limit=100")
	if i := slices.Index(ids, refused.Receipt.ID); len(ids) != 2 || !slices.Contains(ids, whole.ID) || refusals[i] != 1 || refusals[1-i] != 0 {
		t.Errorf("got %v with %v refusals", ids, refusals)
	}
}

func TestAListRefusesWrongParametersByName(t *testing.T) {
	h := newHarness(t)
	for query, want := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "before=7": "before", "limit=0&before=7": "limit before", "page=2": "page", "before=": "before",
	} {
		t.Run(query, func(t *testing.T) {
			var p api.Problem
			answer := h.ask(t, http.MethodGet, "/ingest/receipts?"+query, "", "", &p)
			fields := make([]string, len(p.Details))
			for i, d := range p.Details {
				fields[i] = d.Field
			}
			if got := strings.Join(fields, " "); answer.Status != http.StatusBadRequest || got != want {
				t.Errorf("got %d %q, want 400 %q", answer.Status, got, want)
			}
		})
	}
	for _, query := range []string{"limit=1", "limit=100", "before=" + value.NewID().String()} {
		if answer := h.ask(t, http.MethodGet, "/ingest/receipts?"+query, "", "", nil); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d", query, answer.Status)
		}
	}
}

// A request that fails after any of its steps is sent again with its key: the
// answer has the receipt of a message that is in the queue.
func TestARequestThatFailedIsSentAgain(t *testing.T) {
	h := newHarness(t)
	body := bodyOf(1, 0)
	for i, row := range []struct {
		name     string
		queue    faultyQueue
		messages int
	}{
		{"the message was not sent", faultyQueue{lost: true}, 1},
		{"the message was sent without an answer", faultyQueue{unanswered: true}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			key, posts := fmt.Sprint("key", i), h.queue.Posts
			*h.queue = row.queue
			h.queue.Posts = posts
			if status, _ := h.post(t, body, key); status != http.StatusServiceUnavailable {
				t.Fatalf("got %d, want 503", status)
			}
			*h.queue = faultyQueue{Posts: posts}
			status, made := h.post(t, body, key)
			again, same := h.post(t, body, key)
			if status != http.StatusAccepted || again != status || same.ID != made.ID {
				t.Errorf("got %d %s, then %d %s", status, made.ID, again, same.ID)
			}
			messages := h.sent(t)
			found := false
			for _, m := range messages {
				found = found || *m.MessageAttributes[receipt.Attribute].StringValue == made.ID.String()
			}
			if len(messages) != row.messages || !found {
				t.Errorf("%d messages, the receipt's %t; want %d", len(messages), found, row.messages)
			}
		})
	}
	if status, _ := h.post(t, bodyOf(1, 0), "key0"); status != http.StatusUnprocessableEntity {
		t.Errorf("another body with the key: got %d", status)
	}
}
