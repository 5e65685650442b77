package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

func TestCostsComeFromTheCountersOfOneOrganization(t *testing.T) {
	h := newTableHarness(t)
	s := servicetest.OnTable(t, h.table, value.NewID())
	s.Set(time.Now())
	e := s.Endpoint(t, "*")
	s.Count(t, e.ID, s.Now(), webhook.Attempt{}, webhook.Attempt{})
	costs := func(org value.ID) (c ops.Costs) {
		t.Helper()
		stdout, stderr, err := runCommand(t.Context(), "costs", "--data", h.data, "--organization", org.String(), "--json")
		if err == nil {
			err = json.Unmarshal([]byte(stdout), &c)
		}
		if err != nil {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		return c
	}
	if c := costs(s.Org); c.Applications != 1 || c.Usage.Events != 2 || c.Dollars == 0 {
		t.Errorf("costs %+v, want two events", c)
	}
	if c := costs(value.NewID()); c.Applications != 0 || c.Dollars != 0 {
		t.Errorf("costs of another organization %+v, want none", c)
	}
	stdout, _, err := runCommand(t.Context(), "costs", "--data", h.data, "--organization", s.Org.String())
	if err != nil || !strings.Contains(stdout, "0 requests, 2 events") || !strings.Contains(stdout, "an estimate") {
		t.Errorf("%v: %s", err, stdout)
	}
	for _, args := range [][]string{{"--month", "2020-01"}, {"--month", "soon"}, {"--organization", "x"}} {
		if _, stderr, err := runCommand(t.Context(), append([]string{"costs", "--data", h.data, "--organization", s.Org.String()}, args...)...); err == nil {
			t.Errorf("%v is taken: %s", args, stderr)
		}
	}
}
