package webhook_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

const now value.Time = 1795242941242

func newRow() *webhook.Row {
	e := &webhook.Endpoint{ID: value.NewID(), ApplicationID: value.NewID(), OrganizationID: value.NewID()}
	return webhook.NewRow(&commerce.WebhookPayload{ID: value.NewID(), Type: "order.created"}, e, "", now)
}

func TestRetriesFollowTheSchedule(t *testing.T) {
	want := []time.Duration{
		5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 10 * time.Hour, 10 * time.Hour, 10 * time.Hour,
	}
	if len(want) != webhook.MaxRetryCount {
		t.Fatalf("%d steps, want %d", len(want), webhook.MaxRetryCount)
	}
	for i, step := range want {
		for random, factor := range map[float64]float64{0: 0.8, 0.5: 1, 0.999999999: 1.2} {
			got, want := webhook.RetryDelay(i+1, random), time.Duration(float64(step)*factor)
			if (got - want).Abs() > time.Millisecond {
				t.Errorf("RetryDelay(%d, %g) = %s, want %s", i+1, random, got, want)
			}
		}
	}
}

func TestRowRemembersItsLastAttempts(t *testing.T) {
	r := newRow()
	reason := "no"
	for i := range 15 {
		r = r.Record(webhook.Outcome{
			Attempt: webhook.Attempt{At: now.Add(time.Duration(i) * time.Hour), Error: &reason}, Verdict: webhook.Failed,
		}, "m", 100, 0, now.Add(time.Duration(i)*time.Hour))
	}
	if r.AttemptCount != 15 || len(r.Attempts) != 12 || r.Attempts[0].At != now.Add(3*time.Hour) || *r.LastAttemptAt != now.Add(14*time.Hour) {
		t.Errorf("%d attempts, %d remembered from %s", r.AttemptCount, len(r.Attempts), r.Attempts[0].At)
	}
}

func TestRedeliveryHasAFullSchedule(t *testing.T) {
	r := newRow()
	reason := "no"
	fail := webhook.Outcome{Attempt: webhook.Attempt{Error: &reason}, Verdict: webhook.Failed}
	for round := range 3 {
		for attempt := range 4 {
			if !r.Pending() {
				t.Fatalf("round %d: FAILED after %d attempts, want 4", round, attempt)
			}
			r = r.Record(fail, "m", 3, 0, now)
		}
		if r.Status != webhook.RowFailed || r.AttemptCount != 4*(round+1) {
			t.Fatalf("round %d: %s after %d attempts in all", round, r.Status, r.AttemptCount)
		}
		r = r.Requeue(now)
	}
}

// Whatever happens to a row, what is derived from its status holds, and
// updatedAt rises, which orders the changes.
func TestRowStaysConsistent(t *testing.T) {
	reason := "no"
	rapid.Check(t, func(t *rapid.T) {
		r, at := newRow(), now
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := r
			at = at.Add(time.Duration(rapid.Int64Range(-1000, 1e10).Draw(t, "passing")))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				r = r.Hold(webhook.HeldPaused, at)
			case 1:
				r = r.Cancel(at)
			case 2:
				r = r.Requeue(at)
			default:
				o := webhook.Outcome{Verdict: rapid.SampledFrom([]webhook.Verdict{webhook.Delivered, webhook.Failed, webhook.Hopeless}).Draw(t, "verdict")}
				if o.Verdict != webhook.Delivered {
					o.Attempt.Error = &reason
				}
				o.RetryAfter = time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "retryAfter"))
				r = r.Record(o, "m", rapid.IntRange(0, 10).Draw(t, "retries"), rapid.Float64Range(0, 0.99).Draw(t, "random"), at)
			}
			if r.UpdatedAt <= before.UpdatedAt || r.AttemptCount < before.AttemptCount {
				t.Fatalf("updatedAt %s after %s, %d attempts after %d", r.UpdatedAt, before.UpdatedAt, r.AttemptCount, before.AttemptCount)
			}
			pending := r.Status == webhook.RowPending
			switch {
			case pending != (r.NextAttemptAt != nil), (r.Status == webhook.RowHeld) != (r.HeldReason != ""),
				pending != (r.Carrier != "" || r.DueAt != nil), r.Carrier != "" && r.DueAt != nil:
				t.Fatalf("inconsistent: %+v", r)
			case pending && r.NextAttemptAt.Std().Sub(at.Std()) > webhook.MaxRetryAfter:
				t.Fatalf("the next attempt lies %s ahead", r.NextAttemptAt.Std().Sub(at.Std()))
			}
		}
	})
}

func TestResponseBodiesAreClippedAsText(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"short":            {"ok", "ok"},
		"empty":            {"", ""},
		"long":             {strings.Repeat("a", 2000), strings.Repeat("a", 1024)},
		"cut in a letter":  {strings.Repeat("é", 1000), strings.Repeat("é", 512)},
		"cut before a sun": {"a" + strings.Repeat("☀", 400), "a" + strings.Repeat("☀", 341)},
		"not UTF-8":        {"a\xff\xfeb", "a\ufffdb"},
	} {
		if got := webhook.ClipBody([]byte(tt.in)); got != tt.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := webhook.ClipBody([]byte(strings.Repeat("a\xff", 3000))); len(got) > webhook.MaxResponseBody || !utf8.ValidString(got) {
		t.Errorf("binary: %d bytes", len(got))
	}
}

func TestMessageNamesItsRow(t *testing.T) {
	r := newRow()
	ref, err := webhook.ParseRef(r.Ref().Body())
	if err != nil || ref != r.Ref() {
		t.Errorf("ParseRef(%s) = %+v, %v", r.Ref().Body(), ref, err)
	}
	for _, bad := range []string{"", "{}", "[]", strings.Replace(r.Ref().Body(), r.EventID.String(), value.ID{}.String(), 1), r.Ref().Body() + "x"} {
		if ref, err := webhook.ParseRef(bad); err == nil {
			t.Errorf("ParseRef(%q) = %+v, want an error", bad, ref)
		}
	}
}

func TestRowsAreShownForThirtyDaysAndLess(t *testing.T) {
	for _, days := range []struct {
		n     int
		shown bool
	}{{30, true}, {31, false}} {
		if shown := now.Add(time.Duration(days.n)*24*time.Hour) < newRow().ExpiresAt(); shown != days.shown {
			t.Errorf("after %d days: shown %t", days.n, shown)
		}
	}
	if webhook.PayloadRetention <= webhook.Retention {
		t.Error("payloads expire before their rows")
	}
}

func TestChangeOfAnEndpointIsCompared(t *testing.T) {
	description := "d"
	e := &webhook.Endpoint{URL: "https://a.example", Status: webhook.Active, SubscribedEvents: []string{"*"}, UpdatedAt: now}
	given := func(s string) account.Patch[string] { return account.Patch[string]{Given: true, Value: s} }
	for name, tt := range map[string]struct {
		dto     webhook.EndpointChange
		changes bool
	}{
		"nothing":         {webhook.EndpointChange{}, false},
		"the same url":    {webhook.EndpointChange{URL: given("https://a.example")}, false},
		"cleared already": {webhook.EndpointChange{Description: account.Patch[string]{Given: true, Null: true}}, false},
		"a description":   {webhook.EndpointChange{Description: given(description)}, true},
		"another url":     {webhook.EndpointChange{URL: given("https://b.example")}, true},
		"other events":    {webhook.EndpointChange{Events: account.Patch[[]string]{Given: true, Value: []string{"order.*"}}}, true},
		"the same status": {webhook.EndpointChange{Status: account.Patch[webhook.Status]{Given: true, Value: webhook.Active}}, false},
		"PAUSED":          {webhook.EndpointChange{Status: account.Patch[webhook.Status]{Given: true, Value: webhook.Paused}}, true},
	} {
		got, err := e.Update(tt.dto, now)
		if err != nil || (got != e) != tt.changes || tt.changes && got.UpdatedAt != now+1 {
			t.Errorf("%s: %+v, %v; want a change %t", name, got, err, tt.changes)
		}
	}
}

func TestEndpointTagHasTwoParts(t *testing.T) {
	e := &webhook.Endpoint{UpdatedAt: now}
	at := now
	tags := map[string]bool{}
	for _, c := range []webhook.Counters{{}, {SuccessCount: 1, LastSuccessAt: &at}, {FailureCount: 1, LastFailureAt: &at}} {
		tag := e.ETag(c)
		tags[tag] = true
		if head, _, _ := strings.Cut(tag, "."); head != strings.Split(e.ETag(webhook.Counters{}), ".")[0] {
			t.Errorf("the configuration's part of %s differs", tag)
		}
	}
	if len(tags) != 3 {
		t.Errorf("tags %v, want three", tags)
	}
}

func TestDisabledEventIsDerivedFromTheTransition(t *testing.T) {
	active := &webhook.Endpoint{ID: value.NewID(), OrganizationID: value.NewID(), Status: webhook.Active, UpdatedAt: now, Secret: webhook.Secret{Sealed: "sealed", Tail: "abcd"}}
	disabled := active.Disable("answered 410 Gone", now)
	for name, tt := range map[string]struct {
		old, next *webhook.Endpoint
		emitted   bool
	}{
		"disabled": {active, disabled, true}, "created": {nil, active, false}, "deleted": {active, nil, false},
		"still disabled": {disabled, disabled, false}, "activated": {disabled, active, false},
	} {
		first, err := webhook.DisabledEvent(tt.old, tt.next, webhook.Counters{})
		if err != nil || (first != nil) != tt.emitted {
			t.Errorf("%s: %+v, %v", name, first, err)
			continue
		}
		again, err := webhook.DisabledEvent(tt.old, tt.next, webhook.Counters{})
		if err != nil || cmp.Diff(first, again) != "" {
			t.Errorf("%s: another event the second time: %s", name, cmp.Diff(first, again))
		}
		if tt.emitted && (strings.Contains(string(first.Data.Object), "sealed") || first.Timestamp != disabled.UpdatedAt) {
			t.Errorf("%s: %s", name, first.Data.Object)
		}
	}
}
