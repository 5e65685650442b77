package app_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/account"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/delivery/snstopic"
	"github.com/commerce-integration/service/pkg/webhook"
)

// alertURL makes the alert URL of the application.
func (w *harness) alertURL(name string, answer func(call) (int, http.Header)) *webhook.Endpoint {
	w.t.Helper()
	w.mu.Lock()
	w.receivers["/"+name] = &party{answer: answer}
	w.mu.Unlock()
	e, secret := webhook.NewAlertURL(w.Org, w.App, webhook.SetAlertsDto{URL: new(w.server.URL + "/" + name)}, w.Box.Seal, w.Now())
	w.Leaks.Made(secret)
	if err := w.Table.CreateEndpoint(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// told is an alert that somebody heard.
type told struct{ kind, id string }

// heard lists the alerts that came to a receiver, each once, in their order.
func (w *harness) heard(name string) (alerts []told) {
	w.t.Helper()
	for _, c := range w.calls(name) {
		var payload struct{ ID, Type string }
		if err := json.Unmarshal([]byte(c.body), &payload, json.MatchCaseInsensitiveNames(true)); err != nil || payload.ID != c.event {
			w.t.Errorf("%s: %v", c.body, err)
		}
		if alert := (told{payload.Type, payload.ID}); !slices.Contains(alerts, alert) {
			alerts = append(alerts, alert)
		}
	}
	return alerts
}

// publishes sets a topic up, and returns the alerts that came to it, each once.
func (w *harness) publishes() func() []told {
	w.t.Helper()
	var alerts []told
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var payload struct{ ID, Type string }
		if err := json.Unmarshal([]byte(r.FormValue("Message")), &payload, json.MatchCaseInsensitiveNames(true)); err != nil {
			w.t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if alert := (told{payload.Type, payload.ID}); !slices.Contains(alerts, alert) {
			alerts = append(alerts, alert)
		}
		_, _ = out.Write([]byte(`<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult/></PublishResponse>`))
	}))
	w.t.Cleanup(server.Close)
	client := sns.New(sns.Options{
		BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	w.topic = mortalTopic{snstopic.New(client, "arn:aws:sns:us-east-1:222222222222:alerts"), w.deaths}
	w.boot()
	return func() []told {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(alerts)
	}
}

// kinds are the types of alerts.
func kinds(alerts []told) string {
	names := make([]string, len(alerts))
	for i, a := range alerts {
		names[i] = a.kind
	}
	return strings.Join(names, " ")
}

// TestEachAlertOfTheOnlyEndpointComesOnce has the dispatcher die after each of
// its effects around each alert, and each run of the sweeper and the worker after
// some of theirs.
func TestEachAlertOfTheOnlyEndpointComesOnce(t *testing.T) {
	const day = 24 * time.Hour
	w := newHarness(t, 0)
	published, up := w.publishes(), false
	e := w.endpoint("r", 10, func(call) (int, http.Header) {
		if up {
			return http.StatusOK, nil
		}
		return http.StatusServiceUnavailable, nil
	}, "order.created")
	alerts := w.alertURL("a", accepts)
	for i := range 12 {
		w.order("x")
		w.until(time.Duration(i) * 10 * time.Second)
	}
	for _, step := range []struct {
		calm, dying time.Duration // processes die between the two
		want        string
	}{
		{time.Minute, 20 * time.Minute, ""},
		{time.Hour, 130 * time.Minute, "endpoint.failing"},
		{4*day - 2*time.Hour, 4*day + time.Hour, "endpoint.failing endpoint.disabling"},
		{5*day - time.Hour, 5*day + 3*time.Hour, "endpoint.failing endpoint.disabling endpoint.disabled"},
	} {
		w.until(max(step.calm, w.Time().Sub(w.start)))
		w.deaths.on = true
		w.until(step.dying)
		w.deaths.on = false
		if got := kinds(w.heard("a")); got != step.want {
			t.Fatalf("after %s: heard %q, want %q", step.dying, got, step.want)
		}
	}
	up = true
	w.activate(e)
	w.deaths.on = true
	for i := range maxCut {
		w.order("y")
		w.until(5*day + 4*time.Hour + time.Duration(i)*time.Minute)
	}
	w.deaths.on = false
	w.until(6 * day)
	heard := w.heard("a")
	if got := kinds(heard); got != "endpoint.failing endpoint.disabling endpoint.disabled endpoint.recovered" {
		t.Errorf("heard %q", got)
	}
	if got := published(); !slices.Equal(got, heard) {
		t.Errorf("published %v, want %v", got, heard)
	}
	rows := w.deliveries(alerts)
	for _, d := range rows {
		if d.Status != webhook.DeliveryDelivered {
			t.Errorf("%s is %s", d.Type, d.Status)
		}
	}
	if len(rows) != len(heard) {
		t.Errorf("%d deliveries of %d alerts", len(rows), len(heard))
	}
}

func TestAnEventThatFailedIsToldOnceAndItsAlertNever(t *testing.T) {
	w := newHarness(t, 0)
	published := w.publishes()
	w.endpoint("r", 1, func(call) (int, http.Header) { return http.StatusInternalServerError, nil }, "order.created")
	alerts := w.alertURL("a", func(call) (int, http.Header) { return http.StatusInternalServerError, nil })
	other := w.OfApplication(w.Application(t))
	other.Endpoint(t, "event.*")
	w.deaths.on = true
	w.order("x")
	w.until(time.Minute)
	w.deaths.on = false
	w.until(5 * 24 * time.Hour) // past the last retry of the alert
	heard := w.heard("a")
	if got := kinds(heard); got != commerce.EventEventFailed {
		t.Errorf("heard %q", got)
	}
	if got := published(); !slices.Equal(got, heard) {
		t.Errorf("published %v, want %v", got, heard)
	}
	if rows := w.deliveries(alerts); len(rows) != 1 || rows[0].Status != webhook.DeliveryFailed {
		t.Errorf("deliveries of the alert %+v, want one that FAILED", rows)
	}
	if all := w.AllDeliveries(t); len(all) != 2 {
		t.Errorf("%d deliveries, want the event's and its alert's", len(all))
	}
}

func TestNothingIsAnnouncedWhileAnApplicationIsSuspendedOrOnceItIsDeleted(t *testing.T) {
	for name, end := range map[string]func(*harness){
		"suspended": func(w *harness) { w.Suspend(t, w.App) },
		"deleted": func(w *harness) {
			if _, err := w.Table.DeleteApplication(t.Context(), w.Org, w.App, func(*account.Application) error { return nil }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, 0)
			published := w.publishes()
			w.endpoint("r", 10, func(call) (int, http.Header) { return http.StatusInternalServerError, nil }, "order.created")
			w.alertURL("a", accepts)
			for i := range 12 {
				w.order("x")
				w.until(time.Duration(i) * 10 * time.Second)
			}
			w.until(30 * time.Minute)
			end(w)
			w.until(3 * time.Hour)
			if heard, sent := w.heard("a"), published(); len(heard)+len(sent) > 0 {
				t.Errorf("heard %v, published %v", heard, sent)
			}
		})
	}
}
