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

// TestTheGuidesFollowersGoOn gives the followers of the feed what can come in the
// place of changes.
func TestTheGuidesFollowersGoOn(t *testing.T) {
	t.Parallel()
	for _, c := range samplesOf(t)["sync.md"] {
		if len(c) == 1 || !strings.HasPrefix(c.in("sh").file, "follow.") {
			continue
		}
		for _, language := range chosenLanguages() {
			t.Run(language, func(t *testing.T) {
				t.Parallel()
				followerGoesOn(t, c.in(language).command())
			})
		}
	}
}

func followerGoesOn(t *testing.T, command string) {
	t.Helper()
	needs(t, "bash", "curl", "jq", strings.Fields(command)[0])
	folder, _ := programs(t)
	product := func(id, next string) string {
		return fmt.Sprintf(`{"data":[{"kind":"product","op":"put","id":%q,"object":{}}],"meta":{"next":%q,"more":false}}`, id, next)
	}
	type step struct {
		status      int
		body, after string // after is the cursor that it is asked for
	}
	answers := make(chan step, 7)
	for _, s := range []step{
		{http.StatusTooManyRequests, `{"code":"rate_limited"}`, ""},
		{http.StatusServiceUnavailable, `busy`, ""},
		{http.StatusOK, product("a", "1"), ""},
		{http.StatusBadRequest, `{"code":"cursor_expired"}`, "1"},
		{http.StatusOK, product("b", "2"), ""},
		{http.StatusOK, `{"data":[{"kind":"product","op":"delete","id":"b","object":null}],"meta":{"next":"3","more":false}}`, "2"},
		{http.StatusForbidden, `{"message":"no"}`, "3"},
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
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "API="+server.URL, "KEY=key")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, want := range []string{"product 1\n", "product 1\n", ""} {
		if out, err := run(); err != nil || out != want {
			t.Errorf("got %q, %v, want %q", out, err, want)
		}
	}
	if out, err := run(); err == nil || !strings.HasPrefix(out, `{"message":"no"}`) {
		t.Errorf("refused: got %q, %v", out, err)
	}
	server.Close()
	if out, err := run(); err == nil || !strings.HasPrefix(out, "no answer: ") {
		t.Errorf("nobody listens: got %q, %v", out, err)
	}
}
