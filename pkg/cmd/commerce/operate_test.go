//go:build unix

package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
)

// TestOperatingAService uses a service of its own, whose endpoints and park are
// nobody else's.
func TestOperatingAService(t *testing.T) {
	t.Parallel()
	s := newOwnService(t)
	s.start(t)
	t.Run("replay", s.whatFailsAgainIsNamed)
	t.Run("listen", s.listenLeavesNothingBehind)
	s.stop(t)
	if said := refused(t, nil, "listen", "--addr", "127.0.0.1:0", "--data", s.data, "--subscribe", "*"); !strings.Contains(said, "no local service runs here") {
		t.Errorf("without a service: got %q", said)
	}
}

func (s *ownService) whatFailsAgainIsNamed(t *testing.T) {
	s.sendTo(t, strings.Replace(s.DeliveriesQueueURL, "DeliveriesQueue", ops.ParkQueueName, 1), "no record")
	stdout, stderr, err := runCommand(t.Context(), "replay", "--data", s.data)
	if exitCode(err) != exitFailed || !strings.HasSuffix(stdout, "\nreplayed 0 records\n") || stderr != "commerce: failed again and parked still: 1 record\n" {
		t.Errorf("replay of no record: got %q, %q, %v", stdout, stderr, err)
	}
}

func (s *ownService) listenLeavesNothingBehind(t *testing.T) {
	var endpoints page
	s.history(t, "/developers/webhooks/endpoints", &endpoints)
	before := endpoints.Meta.Total
	args := []string{"listen", "--addr", "127.0.0.1:" + freePort(t), "--data", s.data, "--subscribe", "order.*,payment.completed"}
	p := launch(t, nil, args...)
	await(t, "the listener", func() bool { return strings.Contains(p.output.String(), "listening on ") })
	id := value.NewID()
	s.send(t, s.order(id, "CONFIRMED"))
	for _, event := range []string{"order.created", "order.confirmed"} {
		line := regexp.MustCompile(`(?m)^\S+Z  ` + regexp.QuoteMeta(event) + ` +\S+  ` + id.String() + `  verified$`)
		await(t, event, func() bool { return line.MatchString(p.output.String()) })
	}
	p.interrupt(t)
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, &p.output)
	}
	s.history(t, "/developers/webhooks/endpoints", &endpoints)
	if endpoints.Meta.Total != before {
		t.Errorf("endpoints after the end: got %v, want those before", endpoints.Data)
	}
}

func TestEraseFindsTheTableAndTheQueues(t *testing.T) {
	t.Parallel()
	s := newOrganization(t)
	s.send(t, s.order(value.NewID(), "PENDING"))
	s.send(t, fmt.Sprintf(`{"organizationId":%q,"kind":"customer","op":"put","record":{"id":%q,"age":1}}`, s.OrganizationID, value.NewID()))
	await(t, "the order", func() bool { return s.total(t, "/api/orders") == 1 })
	await(t, "the refused record", func() bool {
		return strings.HasSuffix(s.commerce(t, "rejects", "--organization", s.OrganizationID), "\n1 message\n")
	})
	args := []string{"erase", "--organization", s.OrganizationID}
	if got := s.commerce(t, args...); !regexp.MustCompile(`\nrecord +1\n`).MatchString(got) || !strings.HasSuffix(got, "give --yes to erase\n") {
		t.Errorf("without --yes: got %q", got)
	}
	got := s.commerce(t, append(args, "--yes")...)
	if !strings.HasSuffix(got, "nothing is left\n") || !regexp.MustCompile(`\nmessage in RecordsDLQ +1\n`).MatchString(got) {
		t.Errorf("erase: got %q", got)
	}
}

func TestVerifyTellsWhatReindexRepairs(t *testing.T) {
	t.Parallel()
	h := newTableHarness(t)
	s := servicetest.OnTable(t, h.table, value.MustID(testOrganization))
	id := value.NewID()
	s.Put(t, commerce.KindProduct, nil, fmt.Sprintf(`{"id":%q,"name":"Tea"}`, id), nil) // which no indexer sees
	of := []string{"--data", h.data, "--organization", testOrganization}
	verify := func(want string, code int) {
		t.Helper()
		cmd := verifyCommand(ops.Verifier{})
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(of)
		if err := cmd.ExecuteContext(t.Context()); exitCode(err) != code || !strings.HasPrefix(out.String(), want) {
			t.Errorf("verify: got %q, %v; want %q", &out, err, want)
		}
	}
	lists := fmt.Sprintf("%d lists of 1 organization\n", len(listNames()))
	verify(fmt.Sprintf("%s products %s: in the table at revision ", testOrganization, id), exitFound)
	if stdout, stderr, err := runCommand(t.Context(), append([]string{"reindex"}, of...)...); err != nil || stdout != "reindexed "+lists {
		t.Errorf("reindex: got %q, %s", stdout, stderr)
	}
	verify("no differences in "+lists, 0)
}
