package bench

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestTheWireAnswersByWhatIsAsked(t *testing.T) {
	w, err := newWire(t.Context(), func(r *wireRequest) []byte {
		return ok("text/plain", []byte(strings.Join([]string{string(r.path), string(r.target), string(r.event), string(r.body)}, "|")))
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // on the same connection
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url()+"/hook", strings.NewReader("hello"))
		r.Header.Set("X-Amz-Target", "T.Op")
		r.Header.Set("webhook-id", "e-1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got, want := string(body), "/hook|T.Op|e-1|hello"; got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestTheWireEndsAConnectionWithoutAnAnswer(t *testing.T) {
	w, err := newWire(t.Context(), func(*wireRequest) []byte { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url(), strings.NewReader("x"))
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Errorf("answered %d, want none", answer.StatusCode)
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestTheWireTellsWhatItDoesNotKnow(t *testing.T) {
	w, err := newWire(t.Context(), func(*wireRequest) []byte { return ok("text/plain", nil) })
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url(), io.MultiReader(strings.NewReader("chunked")))
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Errorf("a request without a length was answered %d, want none", answer.StatusCode)
	}
	if err := w.close(); !errors.Is(err, errRequest) {
		t.Errorf("close told %v, want the request that is not known", err)
	}
}
