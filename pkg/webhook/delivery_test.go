package webhook_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/webhook"
)

const now value.Time = 1795242941242

func newDelivery() *webhook.Delivery {
	e := &webhook.Endpoint{ID: value.NewID(), ApplicationID: value.NewID(), OrganizationID: value.NewID()}
	return webhook.NewDelivery(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, e, "", now)
}

// failed is an attempt that failed.
func failed(at value.Time, result webhook.AttemptResult) webhook.Outcome {
	return webhook.Outcome{Attempt: webhook.Attempt{At: at, Error: new("no")}, Result: result}
}

func TestRetriesFollowTheSchedule(t *testing.T) {
	want := []time.Duration{
		5 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour,
		24 * time.Hour, 31 * time.Hour, 31 * time.Hour, 31 * time.Hour,
	}
	if len(want) != webhook.MaxRetryCount {
		t.Fatalf("%d steps, want %d", len(want), webhook.MaxRetryCount)
	}
	for i, step := range want {
		for random, factor := range map[float64]float64{0: 1, 0.5: 1.1, 0.999999999: 1.2} {
			got, want := webhook.RetryDelay(i+1, random), time.Duration(float64(step)*factor)
			if (got - want).Abs() > time.Millisecond {
				t.Errorf("RetryDelay(%d, %g) = %s, want %s", i+1, random, got, want)
			}
		}
	}
}

func TestDeliveryRemembersItsLastAttempts(t *testing.T) {
	r := newDelivery()
	for i := range 15 {
		at := now.Add(time.Duration(i) * time.Hour)
		r = r.Record(failed(at, webhook.AttemptFailed), "m", 100, 0, at)
	}
	if r.AttemptCount != 15 || len(r.Attempts) != 12 || r.Attempts[0].At != now.Add(3*time.Hour) || *r.Shape().LastAttemptAt != now.Add(14*time.Hour) {
		t.Errorf("%d attempts, %d remembered from %s", r.AttemptCount, len(r.Attempts), r.Attempts[0].At)
	}
}

func TestRedeliveryHasAFullSchedule(t *testing.T) {
	r := newDelivery()
	fail := failed(now, webhook.AttemptFailed)
	for round := range 3 {
		for attempt := range 4 {
			if !r.Pending() {
				t.Fatalf("round %d: FAILED after %d attempts, want 4", round, attempt)
			}
			r = r.Record(fail, "m", 3, 0, now)
		}
		if r.Status != webhook.DeliveryFailed || r.AttemptCount != 4*(round+1) {
			t.Fatalf("round %d: %s after %d attempts in all", round, r.Status, r.AttemptCount)
		}
		r = r.Requeue(now)
	}
}

func TestFailedProbesUseUpNoRetry(t *testing.T) {
	fail := failed(now, webhook.AttemptFailed)
	d := newDelivery().Record(fail, "m", 2, 0, now)
	for range 100 {
		d = d.Hold(webhook.HeldCircuitOpen, now).ResumeAsProbe(now, now).Record(fail, "m", 2, 0, now)
		if !d.Pending() {
			t.Fatalf("%s after %d attempts, 2 of them retries, want PENDING", d.Status, d.AttemptCount)
		}
	}
	d = d.Hold(webhook.HeldCircuitOpen, now).Resume(now)
	for retry := 1; retry <= 2; retry++ {
		if !d.Pending() || d.AttemptCount != 100+retry {
			t.Fatalf("%s after %d attempts, want PENDING after %d", d.Status, d.AttemptCount, 100+retry)
		}
		d = d.Record(fail, "m", 2, 0, now)
	}
	if d.Status != webhook.DeliveryFailed {
		t.Errorf("%s after both retries, want FAILED", d.Status)
	}
	refused := newDelivery().Hold(webhook.HeldCircuitOpen, now).ResumeAsProbe(now, now).
		Record(failed(now, webhook.AttemptRefused), "m", 8, 0, now)
	if refused.Status != webhook.DeliveryFailed {
		t.Errorf("a probe that failed for good: %s, want FAILED", refused.Status)
	}
}

func TestHeldDeliveryGoesOnWhereItsScheduleWas(t *testing.T) {
	fail := failed(now, webhook.AttemptFailed)
	r := newDelivery()
	for attempt := range 4 {
		if !r.Pending() || r.AttemptCount != attempt {
			t.Fatalf("%s after %d attempts, want PENDING after %d", r.Status, r.AttemptCount, attempt)
		}
		r = r.Record(fail, "m", 5, 0, now).Hold(webhook.HeldCircuitOpen, now).Resume(now)
	}
	r = r.Record(fail, "m", 5, 0, now)
	if !r.Pending() {
		t.Fatalf("%s after %d attempts of 6", r.Status, r.AttemptCount)
	}
	if wait := r.NextAttemptAt.Std().Sub(now.Std()); r.ScheduleStart != 0 || wait != 4*time.Hour {
		t.Errorf("the fifth attempt failed, the next in %s, %+v", wait, r)
	}
	if last := r.Record(fail, "m", 5, 0, now); last.Status != webhook.DeliveryFailed {
		t.Errorf("%s after %d attempts, want FAILED", last.Status, last.AttemptCount)
	}
}

func TestProbeWaitsForItsTimeUnderADueMark(t *testing.T) {
	at := now.Add(40 * time.Second)
	held := newDelivery().Hold(webhook.HeldCircuitOpen, now)
	r := held.ResumeAsProbe(at, now)
	if !r.Probe || !r.Pending() || r.HeldReason != "" || *r.NextAttemptAt != at || *r.DueAt != at.Add(webhook.Lease) || held.Pending() {
		t.Errorf("probe %+v", r)
	}
	if r = held.Resume(now); r.Probe || !r.Pending() || r.HeldReason != "" || *r.NextAttemptAt != now || *r.DueAt != now.Add(webhook.Lease) {
		t.Errorf("resumed %+v", r)
	}
	if r = held.RequeueAsProbe(now); !r.Probe || !r.Pending() || *r.NextAttemptAt != now || *r.DueAt != now.Add(webhook.Lease) || r.ScheduleStart != r.AttemptCount {
		t.Errorf("redelivered %+v", r)
	}
	if again := held.ResumeAsProbe(at, now).Hold(webhook.HeldCircuitOpen, now); again.Probe {
		t.Errorf("held again %+v", again)
	}
}

// Deliveries are the most that an event writes: one write unit is 1 KiB with the
// keys.
func TestDeliveriesAreSmallAtRest(t *testing.T) {
	site := value.NewID()
	d := newDelivery()
	d.SiteID, d.Type = &site, "order.fulfillment.updated"
	usual := webhook.Exchange{
		URL: "https://shop.example.com/hooks/commerce", Signature: webhook.Sign("", now.Std(), nil, []byte("key")), Status: 200,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}, "Date": {"Thu, 26 Nov 2026 01:55:01 GMT"}, "Server": {"nginx"}},
		Body:   []byte(`{"received":true,"id":"evt_0192f0c45b1e7a2d"}`),
	}
	delivered := webhook.Outcome{Attempt: usual.Keep(now, 12*time.Millisecond)}
	if a := delivered.Attempt; a.URL != usual.URL || len(a.ResponseHeaders) != len(usual.Header) || *a.ResponseBody != string(usual.Body) {
		t.Errorf("a usual exchange is not kept whole: %+v", a)
	}
	for name, tt := range map[string]struct {
		d    *webhook.Delivery
		most int
	}{
		"before its attempt": {d, 700},
		"resumed":            {d.Hold(webhook.HeldCircuitOpen, now).ResumeAsProbe(now, now), 700},
		"after a success":    {d.Record(delivered, "0192f0c4-5b1e-7a2d-8c3f-1e5d7b9a2c40", 8, 0, now), 1000},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := json.Marshal(tt.d)
			if err != nil || len(doc) >= tt.most {
				t.Errorf("%d bytes, %v; want less than %d: %s", len(doc), err, tt.most, doc)
			}
			var got webhook.Delivery
			if err := json.Unmarshal(doc, &got); err != nil || cmp.Diff(tt.d, &got) != "" {
				t.Errorf("%v, %s", err, cmp.Diff(tt.d, &got))
			}
		})
	}
}

// Whatever happens to a row, what is derived from its status holds, and
// updatedAt rises, which orders the changes.
func TestDeliveryStaysConsistent(t *testing.T) {
	reason := "no"
	rapid.Check(t, func(t *rapid.T) {
		r, at := newDelivery(), now
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := r
			at = at.Add(time.Duration(rapid.Int64Range(-1000, 1e10).Draw(t, "passing")))
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 5:
				r = r.Resume(at)
			case 7:
				r = r.RequeueAsProbe(at)
			case 6:
				r = r.ResumeAsProbe(at.Add(30*time.Second), at)
			case 0:
				r = r.Hold(webhook.HeldPaused, at)
			case 1:
				r = r.Cancel(at)
			case 2:
				r = r.Requeue(at)
			default:
				o := webhook.Outcome{Result: rapid.SampledFrom([]webhook.AttemptResult{webhook.AttemptSucceeded, webhook.AttemptFailed, webhook.AttemptRefused}).Draw(t, "verdict")}
				if o.Result != webhook.AttemptSucceeded {
					o.Attempt.Error = &reason
				}
				o.RetryAfter = time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "retryAfter"))
				r = r.Record(o, "m", rapid.IntRange(0, 10).Draw(t, "retries"), rapid.Float64Range(0, 0.99).Draw(t, "random"), at)
			}
			if r.UpdatedAt <= before.UpdatedAt || r.AttemptCount < before.AttemptCount {
				t.Fatalf("updatedAt %s after %s, %d attempts after %d", r.UpdatedAt, before.UpdatedAt, r.AttemptCount, before.AttemptCount)
			}
			pending := r.Status == webhook.DeliveryPending
			switch {
			case pending != (r.NextAttemptAt != nil), (r.Status == webhook.DeliveryHeld) != (r.HeldReason != ""),
				pending != (r.MessageID != "" || r.DueAt != nil), r.MessageID != "" && r.DueAt != nil, r.Probe && !pending:
				t.Fatalf("inconsistent: %+v", r)
			case pending && r.NextAttemptAt.Std().Sub(at.Std()) > max(webhook.MaxRetryAfter, webhook.RetryDelay(webhook.MaxRetryCount, 1)):
				t.Fatalf("the next attempt lies %s ahead", r.NextAttemptAt.Std().Sub(at.Std()))
			}
		}
	})
}

func TestResponseBodiesAreClippedAsText(t *testing.T) {
	for name, tt := range map[string]struct {
		status   int
		in, want string
	}{
		"short":            {500, "ok", "ok"},
		"empty":            {500, "", ""},
		"long":             {500, strings.Repeat("a", 2000), strings.Repeat("a", 1024)},
		"of a success":     {200, strings.Repeat("a", 2000), strings.Repeat("a", 200)},
		"of a redirect":    {300, strings.Repeat("a", 2000), strings.Repeat("a", 1024)},
		"cut in a letter":  {500, strings.Repeat("é", 1000), strings.Repeat("é", 512)},
		"cut before a sun": {500, "a" + strings.Repeat("☀", 400), "a" + strings.Repeat("☀", 341)},
		"not UTF-8":        {500, "a\xff\xfeb", "a\ufffdb"},
		"binary":           {500, strings.Repeat("a\xff", 3000), strings.Repeat("a\ufffd", 256)},
	} {
		t.Run(name, func(t *testing.T) {
			x := webhook.Exchange{Status: tt.status, Body: []byte(tt.in)}
			if got := *x.Keep(now, 0).ResponseBody; got != tt.want || !utf8.ValidString(got) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// Whole headers are kept while there is room, and of a success less, so that its
// delivery stays small.
func TestTheTextsOfAnAttemptAreBounded(t *testing.T) {
	long := strings.Repeat("x", 298)
	x := webhook.Exchange{
		Signature: "v1,a", OwnHeaders: []string{"X-A", long, "X-B"},
		Header: http.Header{"A": {"1", "2"}, "B": {long}, "C": {"\xff"}, "D": {long[:260]}, "E": {long[:20]}},
	}
	for name, tt := range map[string]struct {
		status, url, wantURL int
		own, headers         []string
	}{
		"a failure":                        {500, 400, 300, []string{"X-A", "X-B"}, []string{"A", "C", "D"}},
		"a success":                        {200, 220, 220, []string{"X-A", "X-B"}, []string{"A", "C", "E"}},
		"a success of a long URL":          {200, 270, 270, []string{"X-A", "X-B"}, nil},
		"a success whose URL takes it all": {200, 400, 290, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x.Status, x.URL = tt.status, strings.Repeat("é", tt.url/2)
			got := x.Keep(now, 0)
			if len(got.URL) != tt.wantURL || !strings.HasPrefix(x.URL, got.URL) || got.Signature != x.Signature {
				t.Errorf("URL of %d bytes %q, want %d; signature %s", len(got.URL), got.URL, tt.wantURL, got.Signature)
			}
			if diff := cmp.Diff(tt.own, got.OwnHeaders) + cmp.Diff(tt.headers, slices.Sorted(maps.Keys(got.ResponseHeaders))); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if a, c := got.ResponseHeaders["A"], got.ResponseHeaders["C"]; len(tt.headers) > 0 && (a != "1, 2" || c != "\ufffd") {
				t.Errorf("A is %q, C is %q", a, c)
			}
		})
	}
}

// Each attempt shows the URL that it asked, also when those before it are no longer
// kept, and the headers that it sent.
func TestAttemptsShowWhatTheySent(t *testing.T) {
	d := newDelivery()
	for i := range 15 {
		url := "https://a.example/"
		if i >= 13 {
			url = "https://b.example/"
		}
		x := webhook.Exchange{URL: url, Signature: "v1,s" + strconv.Itoa(i), OwnHeaders: []string{"Authorization"}}
		d = d.Record(webhook.Outcome{Attempt: x.Keep(now.Add(time.Duration(i)*time.Minute), 0), Result: webhook.AttemptFailed}, "m", 100, 0, now)
	}
	shown := d.Shape()
	for _, a := range shown.Attempts {
		if a.Request != nil {
			t.Errorf("a list shows %+v", a.Request)
		}
	}
	d.ShowExchanges(&shown)
	for i, url := range map[int]string{0: "https://a.example/", 9: "https://a.example/", 10: "https://b.example/", 11: "https://b.example/"} {
		want := &webhook.AttemptRequest{URL: url, Headers: map[string]string{
			"Authorization": "****", "Content-Type": "application/json", "User-Agent": webhook.UserAgent,
			"Webhook-Id": d.EventID.String(), "Webhook-Timestamp": strconv.FormatInt(now.Std().Unix()+60*int64(i+3), 10),
			"Webhook-Signature": "v1,s" + strconv.Itoa(i+3),
		}}
		if diff := cmp.Diff(want, shown.Attempts[i].Request); diff != "" {
			t.Errorf("attempt %d (-want +got):\n%s", i, diff)
		}
	}
	for i, want := range map[int]string{0: "https://a.example/", 1: "", 9: "", 10: "https://b.example/", 11: ""} {
		if got := d.Attempts[i].URL; got != want {
			t.Errorf("attempt %d keeps the URL %q, want %q", i, got, want)
		}
	}
}

// An owner who activates an endpoint recovers what it holds at once. A hold by an
// older look is taken back soon after, and later the owner recovers again.
func TestAHoldIsTakenBackOnceNothingHoldsItAnyMore(t *testing.T) {
	held := newDelivery().Hold(webhook.HeldPaused, now)
	for name, tt := range map[string]struct {
		held        *webhook.Delivery
		status      webhook.Status
		application webhook.ApplicationState
		after       time.Duration
		want        bool
	}{
		"active":              {held, webhook.Active, webhook.ApplicationActive, 14 * time.Minute, true},
		"paused":              {held, webhook.Paused, webhook.ApplicationActive, 14 * time.Minute, false},
		"suspended":           {held, webhook.Active, webhook.ApplicationSuspended, 14 * time.Minute, false},
		"late":                {held, webhook.Active, webhook.ApplicationActive, 16 * time.Minute, false},
		"held by the circuit": {newDelivery().Hold(webhook.HeldCircuitOpen, now), webhook.Active, webhook.ApplicationActive, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.held.RecheckHold(&webhook.Endpoint{Status: tt.status}, tt.application, now.Add(tt.after))
			if (got != nil) != tt.want || tt.want && !got.Pending() {
				t.Errorf("%+v, want it resumed %t", got, tt.want)
			}
		})
	}
	if got := held.RecheckHold(nil, webhook.ApplicationActive, now); got != nil {
		t.Errorf("of a deleted endpoint: %+v", got)
	}
}
