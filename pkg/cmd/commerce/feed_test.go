package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/cmd/commerce/listener"
)

// background runs a command until the test ends it, which returns how it ended.
func background(t *testing.T, args ...string) (out, errOut *lines, end func() error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, errOut = newLines(), newLines()
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	return out, errOut, func() error {
		stop()
		return <-ended
	}
}

func TestTheFeedIsAskedAgainWhenTheServiceIsAway(t *testing.T) {
	t.Parallel()
	answers := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK, http.StatusForbidden}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Next-Cursor", "further")
		w.WriteHeader(answers[0])
		answers = answers[1:]
		_, _ = w.Write([]byte(`{"kind":"order","op":"delete","id":"0192f0c1-7a3e-7c54-9f3b-6c2a4d8e1f42","changedAt":"2026-11-21T06:35:41.242Z","object":null}`))
	}))
	defer service.Close()
	f := feedReader{url: service.URL, key: "key", again: time.Millisecond}
	api, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	var got []feedChange
	errOut := newLines()
	err = f.read(t.Context(), api, waitForChanges, errOut, func(c feedChange) error {
		got = append(got, c)
		return nil
	})
	if err == nil || len(answers) > 0 || len(got) != 1 || f.after != "further" {
		t.Errorf("got %v and %v, cursor %q, after which %v are left", got, err, f.after, answers)
	}
}

func TestListenForwardsTheFeedOfAServiceThatCannotReachIt(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	received := make(chan listener.Event, 10)
	l, err := listener.New([]string{testSecret}, listener.Config{OnEvent: func(e listener.Event) { received <- e }})
	if err != nil {
		t.Fatal(err)
	}
	receiver := httptest.NewServer(l)
	defer receiver.Close()
	out, _, end := background(t, "listen", "--remote", s.BaseURL, "--key", s.APIKey, "--secret", testSecret, "--forward-to", receiver.URL, "--after", "")
	id := value.NewID()
	s.send(t, s.order(id, "PENDING"))
	out.await(t, "answered 204")
	s.send(t, `{"organizationId":"`+s.OrganizationID+`","kind":"order","op":"delete","record":{"id":"`+id.String()+`"}}`)
	out.await(t, "order.deleted")
	if err := end(); err != nil {
		t.Errorf("listen ended with %v", err)
	}
	for _, want := range []string{"order.created", "order.deleted"} {
		e := <-received
		if e.Signature != listener.Verified || e.Type != want || e.ObjectID != id.String() || !strings.Contains(string(e.Body), s.OrganizationID) {
			t.Errorf("got %s %s, want %s of %s", e.Type, e.Body, want, id)
		}
	}
}
