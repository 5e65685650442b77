//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheGuidesFollowerGoesOn gives the follower of the feed what can come in the
// place of changes.
func TestTheGuidesFollowerGoesOn(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	_, programs := samplesOf(t)
	product := func(id, next string) string {
		return fmt.Sprintf(`{"data":[{"kind":"product","op":"put","id":%q,"object":{}}],"meta":{"next":%q,"more":false}}`, id, next)
	}
	type step struct {
		status      int
		body, after string // after is the cursor that it is asked for
	}
	answers := make(chan step, 6)
	for _, s := range []step{
		{http.StatusTooManyRequests, `{"code":"rate_limited"}`, ""},
		{http.StatusServiceUnavailable, `busy`, ""},
		{http.StatusOK, product("a", "1"), ""},
		{http.StatusBadRequest, `{"code":"cursor_expired"}`, "1"},
		{http.StatusOK, product("b", "2"), ""},
		{http.StatusForbidden, `{"message":"no"}`, "2"},
	} {
		answers <- s
	}
	close(answers)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := <-answers
		if got := r.URL.Query().Get("after"); got != next.after {
			t.Errorf("it asked for what came after %q, want %q", got, next.after)
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(next.status)
		fmt.Fprint(w, next.body)
	}))
	defer server.Close()
	run := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "python3", "follow.py")
		cmd.Dir, cmd.Env = programs, append(os.Environ(), "API="+server.URL, "KEY=key")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for range 2 {
		if out, err := run(); err != nil || out != "product 1\n" {
			t.Errorf("got %q, %v", out, err)
		}
	}
	if out, err := run(); err == nil || out != `{"message":"no"}`+"\n" {
		t.Errorf("refused: got %q, %v", out, err)
	}
	server.Close()
	if out, err := run(); err == nil || !strings.HasPrefix(out, "no answer: ") {
		t.Errorf("nobody listens: got %q, %v", out, err)
	}
}
