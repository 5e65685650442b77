package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/webhook"
)

// rotate gives the endpoint a new secret and returns it.
func (s *service) rotate(t *testing.T, endpoint string) string {
	t.Helper()
	resp, answer := s.user(t, http.MethodPost, "/developers/webhooks/endpoints/"+endpoint+"/rotate-secret", "")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("rotate the secret: got %d %s", resp.StatusCode, answer)
	}
	var rotated map[string]any
	if err := json.Unmarshal(answer, &rotated); err != nil {
		t.Fatal(err)
	}
	return rotated["secret"].(string)
}

// age moves the rotations of the endpoint's secret into the past, as if so
// much time had gone by. The libraries go by the system's clock, and so the
// service has to as well.
func (s *service) age(t *testing.T, endpoint string, d time.Duration) {
	t.Helper()
	local := target{data: s.data, organization: value.MustID(s.OrganizationID)}
	table, org, err := local.openOrganization(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.ChangeEndpoint(t.Context(), org, value.MustID(endpoint), func(e *webhook.Endpoint) (*webhook.Endpoint, error) {
		next := *e
		next.UpdatedAt++
		next.PreviousSecrets = slices.Clone(e.PreviousSecrets)
		for i := range next.PreviousSecrets {
			next.PreviousSecrets[i].Until = next.PreviousSecrets[i].Until.Add(-d)
		}
		return &next, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// phase is a delivery with the secrets that must verify it and those that
// must not.
type phase struct {
	name          string
	request       request
	valid, others []string
}

func (p *phase) specimens() []specimen {
	var cases []specimen
	add := func(c specimen) {
		c.name = p.name + ", " + c.name
		cases = append(cases, c)
	}
	for i, secret := range p.valid {
		number := fmt.Sprintf("secret %d of %d", i+1, len(p.valid))
		add(specimen{"as it came, " + number, secret, p.request, true})
		// A signature by one secret proves nothing to the holder of another.
		own := p.request.signatures()[i]
		others := slices.DeleteFunc(p.request.signatures(), func(s string) bool { return s == own })
		add(specimen{"with its signature alone, " + number, secret, p.request.with("webhook-signature", own), true})
		add(specimen{"without its signature, " + number, secret, p.request.with("webhook-signature", strings.Join(append(others, "v1,"), " ")), false})
		for _, c := range tampered(p.request, secret) {
			c.name += ", " + number
			add(c)
		}
	}
	for i, secret := range p.others {
		add(specimen{fmt.Sprintf("as it came, a secret that is not valid (%d)", i+1), secret, p.request, false})
	}
	return cases
}

func TestTheOfficialLibraryVerifiesBeforeDuringAndAfterARotation(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	tap := newWiretap(t, func(n int) int {
		if n == 1 {
			return http.StatusServiceUnavailable // so that its retry comes after a rotation
		}
		return http.StatusNoContent
	})
	created := s.create(t, "/developers/webhooks/endpoints?applicationId="+s.ApplicationID, fmt.Sprintf(`{"url":%q,"events":["order.created"]}`, tap.url))
	endpoint, first := created["id"].(string), created["secret"].(string)
	deliver := func() request {
		s.send(t, s.spicedOrder())
		return tap.next(t)
	}

	before := deliver()
	second := s.rotate(t, endpoint)
	retry := tap.next(t)
	if retry.Header["webhook-id"] != before.Header["webhook-id"] || retry.Body != before.Body || retry.Header["webhook-timestamp"] == before.Header["webhook-timestamp"] {
		t.Errorf("the retry is not the same event at another time:\n%v\n%v", before, retry)
	}
	during := deliver()
	third := s.rotate(t, endpoint)
	twice := deliver()
	s.age(t, endpoint, webhook.RotationOverlap-10*time.Minute)
	nearly := deliver()
	s.age(t, endpoint, 10*time.Minute)
	after := deliver()

	var cases []specimen
	for _, p := range []phase{
		{"before the rotation", before, []string{first}, []string{second, third, testSecret}},
		{"a retry after the rotation", retry, []string{second, first}, []string{third, testSecret}},
		{"during the rotation", during, []string{second, first}, []string{third, testSecret}},
		{"during two rotations", twice, []string{third, second, first}, []string{testSecret}},
		{"shortly before their end", nearly, []string{third, second, first}, []string{testSecret}},
		{"after the rotations", after, []string{third}, []string{first, second, testSecret}},
	} {
		if len(p.request.signatures()) != len(p.valid) {
			t.Fatalf("%s: signatures %q, want one for each of %d secrets", p.name, p.request.signatures(), len(p.valid))
		}
		cases = append(cases, p.specimens()...)
	}
	// What is signed right does not lend its signature to anything else.
	for _, secret := range []string{first, second} {
		cases = append(cases,
			specimen{"the signature of another event", secret, during.with("webhook-signature", retry.Header["webhook-signature"]), false},
			specimen{"the body of another event", secret, during.withBody(retry.Body), false},
			specimen{"the id of another event", secret, during.with("webhook-id", retry.Header["webhook-id"]), false})
	}
	judge(t, cases)
}
