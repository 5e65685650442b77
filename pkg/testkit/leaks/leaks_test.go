package leaks

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	key    = "cis_live_4YBHusWcD6tQkXSv9enNyvxBjXXnIwizlC0GM4ud1TzazH"
	client = "cs_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"
	hook   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwhZx0vYq1mXk="
	code   = "ac_0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"
	renew  = "rt_0192f0c1-9d4f-7b33-8c6e-73b2c4d5e6f7_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd_zyxwvutsrqponmlkjihgfedcba9876543210ZYXW"
	token  = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.MEUCIQDfakesignaturefakesignature"
)

func TestASecretMayBeInTheAnswerThatMakesItAndNowhereElse(t *testing.T) {
	answer := func(w *Watch, method, path, body string, header http.Header) {
		w.Answered(httptest.NewRequest(method, path, nil), header, body)
	}
	create := func(w *Watch) { answer(w, "POST", "/developers/applications", `{"clientSecret":"`+client+`"}`, nil) }
	hookBytes, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(hook, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		do   func(*Watch)
		want bool
	}{
		"made and shown":      {create, false},
		"shown again, masked": {func(w *Watch) { create(w); answer(w, "GET", "/developers/applications", "cs_****abcd", nil) }, false},
		"repeated": {func(w *Watch) {
			create(w)
			answer(w, "POST", "/developers/applications", client, http.Header{"Idempotency-Replayed": {"true"}})
		}, false},
		"shown twice in one answer": {func(w *Watch) { answer(w, "POST", "/x/rotate-secret", client+" "+client, nil) }, true},
		"two secrets in one answer": {func(w *Watch) { answer(w, "POST", "/x/rotate-secret", client+" "+hook, nil) }, true},
		"shown again":               {func(w *Watch) { create(w); create(w) }, true},
		"refreshed, and repeated": {func(w *Watch) {
			answer(w, "POST", "/oauth/token", token+" "+renew, nil)
			answer(w, "POST", "/oauth/token", token+" "+renew, nil)
		}, false},
		"refreshed to the same":        {func(w *Watch) { w.Made(renew); answer(w, "POST", "/oauth/token", token+" "+renew, nil) }, true},
		"a code stored":                {func(w *Watch) { w.Made(code); w.Stored("x", code) }, true},
		"a code's grant in the log":    {func(w *Watch) { w.Made(code); w.Logger().Info(code[3:39]) }, false},
		"shown by another operation":   {func(w *Watch) { answer(w, "GET", "/developers/applications", client, nil) }, true},
		"a part in another answer":     {func(w *Watch) { create(w); answer(w, "GET", "/", client[3:15], nil) }, true},
		"in a header":                  {func(w *Watch) { create(w); answer(w, "GET", "/", "", http.Header{"Location": {client}}) }, true},
		"in the log":                   {func(w *Watch) { w.Logger().Info("x", "y", token); w.Made(token) }, true},
		"in the log and made nowhere":  {func(w *Watch) { w.Logger().Debug(token) }, true},
		"its public part in the log":   {func(w *Watch) { w.Made(key); w.Logger().Info(key[9:17]) }, false},
		"its secret part in the log":   {func(w *Watch) { w.Made(key); w.Logger().Info(key[17:29]) }, true},
		"its end in the log":           {func(w *Watch) { w.Made(key); w.Logger().Info(key[39:51]) }, true},
		"a token's claims in the log":  {func(w *Watch) { w.Made(token); w.Logger().Info("eyJzdWIiOiJ4In0") }, false},
		"stored":                       {func(w *Watch) { w.Made(hook); w.Stored("x", hook) }, true},
		"stored as bytes":              {func(w *Watch) { w.Made(hook); w.Stored("x", string(hookBytes)) }, true},
		"stored in base64":             {func(w *Watch) { w.Made(key); w.Stored("x", base64.StdEncoding.EncodeToString([]byte(key))) }, true},
		"stored before it was made":    {func(w *Watch) { w.Stored("x", hook); w.Made(hook) }, false},
		"another that looks like this": {func(w *Watch) { w.Made(key); w.Stored("x", strings.ToLower(key)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := New()
			test.do(w)
			if got := w.Leaks(); (len(got) > 0) != test.want {
				t.Errorf("got %q, want leaks: %t", got, test.want)
			}
		})
	}
}
