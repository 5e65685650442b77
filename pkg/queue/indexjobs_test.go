package queue_test

import (
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/testkit/queuetest"
)

func TestIndexJobIsReadAsItWasSentInItsOrganizationsGroup(t *testing.T) {
	q := queuetest.Start(t)
	want := queue.IndexJob{OrganizationID: value.NewID(), List: "webhook-events"}
	if err := queue.NewIndexJobs(q.Queue("IndexJobsQueue")).Send(t.Context(), want.OrganizationID, want.List); err != nil {
		t.Fatal(err)
	}
	m := q.Await(t, "IndexJobsQueue")[0]
	got, err := queue.ParseIndexJob(m.Body)
	if err != nil || got != want {
		t.Errorf("%s: got %+v, %v; want %+v", m.Body, got, err, want)
	}
	if group := m.Attributes["MessageGroupId"]; group != want.OrganizationID.String() {
		t.Errorf("group: got %q, want the organization %s", group, want.OrganizationID)
	}
}

func TestWhatIsNoIndexJobIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		"":                       "index job",
		"[]":                     "index job",
		`{"list":"products"}`:    "organization or list is missing",
		`{"organizationId":"x"}`: "organizationId",
		`{"organizationId":"01938f5a-0f00-7000-8000-000000000001"}`: "organization or list is missing",
	} {
		t.Run(body, func(t *testing.T) {
			if job, err := queue.ParseIndexJob(body); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %+v, %v; want an error that says %q", body, job, err, want)
			}
		})
	}
}
