package webhooks_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/webhook"
)

// secrets are the texts of the secrets that sign at present, opened.
func (h *harness) secrets(t *testing.T, item string) []string {
	t.Helper()
	e := h.stored(t, item)
	var texts []string
	for _, s := range e.Secrets(h.Now()) {
		text, err := h.Box.Open(s.Sealed, webhook.SecretPurpose(e.ID))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

func TestARotatedSecretSignsBesideTheNewOneForADay(t *testing.T) {
	h := newHarness(t)
	created := h.must(t, http.StatusCreated, "POST", endpoints+"?applicationId="+h.App.String(), minimal)
	item, first := endpoints+"/"+created.text("id"), created.text("secret")
	at := h.Now()
	h.Count(t, h.stored(t, item).ID, at, webhook.Attempt{At: at})
	h.Pass(time.Hour)
	rotated := h.must(t, http.StatusOK, "POST", item+"/rotate-secret", "")
	second := rotated.text("secret")
	if second == first || len(second) != len(first) || !strings.HasPrefix(second, "whsec_") {
		t.Fatalf("the new secret is %q, the old one %q", second, first)
	}
	if diff := cmp.Diff([]string{second, first}, h.secrets(t, item)); diff != "" {
		t.Errorf("secrets after the rotation (-want +got):\n%s", diff)
	}

	read := h.must(t, http.StatusOK, "GET", item, "")
	want := strings.Replace(rotated.Body, second, "whsec_****"+second[len(second)-4:], 1)
	if diff := cmp.Diff(want, read.Body); diff != "" || read.Header.Get("ETag") != rotated.Header.Get("ETag") {
		t.Errorf("read after the rotation, ETag %s and %s (-want +got):\n%s", rotated.Header.Get("ETag"), read.Header.Get("ETag"), diff)
	}
	if rotated.field("successCount") != 1.0 || rotated.text("updatedAt") != h.Now().String() {
		t.Errorf("the answer shows %s", rotated.Body)
	}
	list := h.must(t, http.StatusOK, "GET", endpoints, "")
	for _, secret := range []string{first, second} {
		if strings.Contains(list.Body+read.Body, secret) {
			t.Errorf("the secret %s is shown again", secret)
		}
	}

	h.Pass(24 * time.Hour)
	if diff := cmp.Diff([]string{second}, h.secrets(t, item)); diff != "" {
		t.Errorf("secrets after a day (-want +got):\n%s", diff)
	}
}

func TestARotationAppliesToTheStateThatIfMatchNames(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	before := h.must(t, http.StatusOK, "GET", item, "").Header.Get("ETag")
	at := h.Now()
	h.Count(t, h.stored(t, item).ID, at, webhook.Attempt{At: at}) // a delivery disturbs nothing
	rotated := h.must(t, http.StatusOK, "POST", item+"/rotate-secret", "", "If-Match", before)
	for _, stale := range []string{before, `"x"`, "W/" + rotated.Header.Get("ETag")} {
		if a := h.must(t, http.StatusPreconditionFailed, "POST", item+"/rotate-secret", "", "If-Match", stale); a.text("code") != "precondition_failed" {
			t.Errorf("If-Match %s: %s", stale, a.Body)
		}
	}
	if got := h.secrets(t, item); len(got) != 2 || got[0] != rotated.text("secret") {
		t.Errorf("secrets %v, want the rotated one and the first", got)
	}
	h.must(t, http.StatusPreconditionFailed, "PATCH", item, `{"description":"x"}`, "If-Match", before)
	h.must(t, http.StatusOK, "POST", item+"/rotate-secret", "{}", "If-Match", `"x", `+rotated.Header.Get("ETag"))
	h.must(t, http.StatusOK, "POST", item+"/rotate-secret", "", "If-Match", "*")
}

// The overlap is the owner's choice. Whatever it is, no more than two secrets sign.
func TestTheOverlapOfARotationIsBounded(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	first := h.secrets(t, item)[0]
	for _, body := range []string{`{"overlapHours":-1}`, `{"overlapHours":169}`, `{"overlapHours":1.5}`, `{"overlapHours":"24"}`, `{"hours":1}`, `[]`} {
		if a := h.must(t, http.StatusBadRequest, "POST", item+"/rotate-secret", body); a.text("code") != "validation_failed" && a.text("code") != "malformed_body" {
			t.Errorf("%s: %s", body, a.Body)
		}
	}
	if got := h.secrets(t, item); len(got) != 1 || got[0] != first {
		t.Errorf("after refusals %v sign, want the first", got)
	}
	previous := first
	for _, row := range []struct {
		body    string
		overlap time.Duration
	}{{`{"overlapHours":168}`, 168 * time.Hour}, {`{"overlapHours":null}`, 24 * time.Hour}, {`{"overlapHours":0}`, 0}, {``, 24 * time.Hour}} {
		secret := h.must(t, http.StatusOK, "POST", item+"/rotate-secret", row.body).text("secret")
		h.Pass(max(0, row.overlap-time.Millisecond))
		want := []string{secret, previous}
		if row.overlap == 0 {
			want = want[:1]
		}
		if diff := cmp.Diff(want, h.secrets(t, item)); diff != "" {
			t.Errorf("%s, to its end (-want +got):\n%s", row.body, diff)
		}
		previous = secret
	}
	h.Pass(time.Millisecond)
	if diff := cmp.Diff([]string{previous}, h.secrets(t, item)); diff != "" {
		t.Errorf("after the last (-want +got):\n%s", diff)
	}
}

func TestTheLastRotationsAnswerSecretsThatSign(t *testing.T) {
	h := newHarness(t)
	item := h.endpoint(t, minimal)
	const users = 8
	answers := make(chan answer, users)
	for range users {
		go func() { answers <- h.do(t, "POST", item+"/rotate-secret", "") }()
	}
	answered := h.secrets(t, item)
	for range users {
		switch a := <-answers; a.Status {
		case http.StatusOK:
			answered = append(answered, a.text("secret"))
		case http.StatusConflict: // others were faster too often
		default:
			t.Errorf("got %d %s", a.Status, a.Body)
		}
	}
	got := h.secrets(t, item)
	if len(got) != 2 || !slices.Contains(answered, got[0]) || !slices.Contains(answered, got[1]) {
		t.Errorf("%v sign, want two of %v", got, answered)
	}
}
