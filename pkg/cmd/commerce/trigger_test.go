package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
)

func TestTriggeredEventsReachTheURLThatListenForwardsTo(t *testing.T) {
	t.Parallel()
	s := newOrganization(t) // the commands work for the service's own one
	l, err := listener.New(nil, listener.Config{})
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(l)
	defer receiver.Close()
	out, errOut, end := background(t, "listen", "--addr", "127.0.0.1:0", "--data", s.data,
		"--subscribe", "order.paid,invoice.voided,product.deleted", "--forward-to", receiver.URL)
	errOut.await(t, "listening on")
	for _, eventType := range []string{"order.paid", "invoice.voided", "product.deleted"} {
		stdout, stderr, err := runCommand(t.Context(), "trigger", eventType, "--data", s.data)
		if err != nil {
			t.Fatal(stderr)
		}
		id := strings.TrimSpace(stdout[strings.LastIndex(strings.TrimSpace(stdout), " "):])
		out.await(t, id+"  verified  answered 204")
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, e := range l.Events() {
		if e.ID == "" || e.Header.Get("Webhook-Signature") == "" {
			t.Errorf("forwarded %+v, want the headers of a webhook", e)
		}
	}
}

func TestTriggerPostsTheExampleOfAnyType(t *testing.T) {
	t.Parallel()
	l, err := listener.New([]string{testSecret}, listener.Config{})
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(l)
	defer receiver.Close()
	for i, eventType := range []string{"endpoint.disabled", "webhook.test", "order.paid"} {
		stdout, stderr, err := runCommand(t.Context(), "trigger", eventType, "--forward-to", receiver.URL, "--secret", testSecret)
		if err != nil || !strings.Contains(stdout, "answered 204 to "+eventType) {
			t.Fatalf("%s: got %q and %q", eventType, stdout, stderr)
		}
		if e := l.Events()[i]; e.Type != eventType || e.Signature != listener.Verified {
			t.Errorf("received %s, want %s, verified", e, eventType)
		}
	}
}
