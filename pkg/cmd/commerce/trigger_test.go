package main

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTriggeredEventsReachTheURLThatListenForwardsTo(t *testing.T) {
	t.Parallel()
	s := newOrganization(t) // the commands work for the service's own one
	l := newCollector(t)
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
