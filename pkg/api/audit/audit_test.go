package audit

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/commerce-integration/service/pkg/auth"
	"github.com/commerce-integration/service/pkg/base/value"
)

func TestAnEntryNamesWhoDidWhatToWhatFromWhere(t *testing.T) {
	const (
		org  = "018f0000-0000-7000-8000-000000000001"
		app  = "018f0000-0000-7000-8000-000000000002"
		id   = "018f0000-0000-7000-8000-000000000003"
		path = "/developers/applications/" + app
	)
	user := auth.Principal{Kind: auth.KindUser, OrganizationID: value.MustID(org), UserID: value.MustID(id)}
	application := auth.Principal{Kind: auth.KindApplication, OrganizationID: value.MustID(org), ApplicationID: value.MustID(app)}
	key := application
	key.Kind, key.KeyID = auth.KindKey, value.MustID(id)
	for name, test := range map[string]struct {
		entry Entry
		want  string
	}{
		"a user's change": {
			Entry{Action: KeyRevoked, Outcome: Done, Actor: user, Target: value.MustID(app), Path: path, SourceAddress: "203.0.113.9"},
			`"action":"apiKey.revoked","outcome":"done","organizationId":"` + org + `","actor":{"kind":"user","id":"` + id + `"},` +
				`"target":{"kind":"apiKey","id":"` + app + `"},"path":"` + path + `","sourceAddress":"203.0.113.9"`,
		},
		"a change that may have failed, to what has no identifier yet": {
			Entry{Action: ApplicationCreated, Outcome: Unknown, Actor: user},
			`"action":"application.created","outcome":"unknown","organizationId":"` + org + `","actor":{"kind":"user","id":"` + id + `"}`,
		},
		"an application's": {
			Entry{Action: EndpointUpdated, Outcome: Done, Actor: application, Target: value.MustID(id)},
			`"action":"endpoint.updated","outcome":"done","organizationId":"` + org + `",` +
				`"actor":{"kind":"application","id":"` + app + `"},"target":{"kind":"endpoint","id":"` + id + `"}`,
		},
		"a genuine key that is refused": {
			Entry{Action: CredentialRefused, Outcome: Refused, Actor: key, Code: "api_key_revoked", KeyText: "4YBHusWc", GatewayRequestID: "r"},
			`"action":"credential.refused","outcome":"refused","organizationId":"` + org + `",` +
				`"actor":{"kind":"apiKey","id":"` + id + `","applicationId":"` + app + `"},"gatewayRequestId":"r","code":"api_key_revoked","key":"4YBHusWc"`,
		},
		"a secret that is wrong": {
			Entry{Action: CredentialRefused, Outcome: Refused, OrganizationID: value.MustID(org), Target: value.MustID(app), Code: "invalid_client"},
			`"action":"credential.refused","outcome":"refused","organizationId":"` + org + `",` +
				`"target":{"kind":"application","id":"` + app + `"},"code":"invalid_client"`,
		},
		"of nobody that is known": {
			Entry{Action: CredentialRefused, Outcome: Refused, Code: "unauthenticated"},
			`"action":"credential.refused","outcome":"refused","code":"unauthenticated"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			withoutTime := func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}
			test.entry.Write(t.Context(), slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
			want := `{"level":"INFO","msg":"audit",` + test.want + "}\n"
			if out.String() != want {
				t.Errorf("got  %swant %s", &out, want)
			}
		})
	}
}
