package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/testkit/dynamotest"
	"github.com/commerce-integration/service/pkg/testkit/servicetest"
	"github.com/commerce-integration/service/pkg/webhook"
)

// tableHarness is a table without functions, with a data folder that points at it.
type tableHarness struct {
	table *dynamo.Table
	data  string
	info  runner.Info
}

func newTableHarness(t *testing.T) *tableHarness {
	t.Helper()
	client, name := dynamotest.Client(t)
	s := &tableHarness{table: dynamo.New(client, name, time.Now), data: t.TempDir()}
	s.info = runner.Info{OrganizationID: testOrganization, DynamoDBEndpoint: *client.Options().BaseEndpoint, TableName: name}
	if err := runner.WriteInfo(s.data, &s.info); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestResealMovesATableInAWSToTheNewKey(t *testing.T) {
	h := newTableHarness(t)
	now := time.Now().Add(-2 * time.Hour)
	manager := servicetest.NewSecretsManager(t, func() time.Time { return now })
	for name, text := range map[string]string{
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": manager.URL, "AWS_ENDPOINT_URL_DYNAMODB": h.info.DynamoDBEndpoint,
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	} {
		t.Setenv(name, text)
	}
	box := func() *sealed.Box {
		keys, _, err := app.ServiceKeys(t.Context(), manager.Config(), "ServiceKey")
		if err != nil {
			t.Fatal(err)
		}
		b, err := sealed.NewBox(keys[0])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	manager.Put("ServiceKey", strings.Repeat("first", 13))
	s := servicetest.OnTable(t, h.table, value.NewID())
	s.Box = box()
	url := "https://example.com/hook"
	e, secret := s.NewEndpoint(t, webhook.CreateWebhookEndpointDto{URL: &url, Events: &[]string{"*"}})
	reseal := func(wantCode int, want ops.ResealCounts, flags ...string) {
		t.Helper()
		text := fmt.Sprintf("sealed items  %d\nresealed      %d\nleft          %d\nunreadable    %d\n", want.Items, want.Resealed, want.Left, want.Unreadable)
		if wantCode == exitTrouble {
			text = ""
		}
		stdout, stderr, err := runCommand(t.Context(), append([]string{"reseal", "--table", h.info.TableName, "--secret", "ServiceKey"}, flags...)...)
		if exitCode(err) != wantCode || stdout != text {
			t.Errorf("%v: exit code %d, %s, printed %s; want %d and %s", flags, exitCode(err), stderr, stdout, wantCode, text)
		}
	}
	manager.Put("ServiceKey", strings.Repeat("second", 11))
	reseal(1, ops.ResealCounts{Items: 1, Resealed: 0, Left: 1, Unreadable: 0}, "--dry-run")
	reseal(0, ops.ResealCounts{Items: 1, Resealed: 1, Left: 0, Unreadable: 0})
	reseal(0, ops.ResealCounts{Items: 1, Resealed: 0, Left: 0, Unreadable: 0}, "--dry-run")
	if got, err := box().Open(s.StoredEndpoint(t, e.ID).Secret.Sealed, webhook.SecretPurpose(e.ID)); err != nil || string(got) != secret {
		t.Errorf("the secret opens as %q, %v; want %q", got, err, secret)
	}

	// Instances may seal under the key before for five minutes.
	now = time.Now()
	manager.Put("ServiceKey", strings.Repeat("third", 13))
	reseal(1, ops.ResealCounts{Items: 1, Resealed: 1, Left: 0, Unreadable: 0})

	// Two rotations without reseal in between.
	now = time.Now().Add(-time.Hour)
	manager.Put("ServiceKey", strings.Repeat("fourth", 11))
	manager.Put("ServiceKey", strings.Repeat("fifth", 13))
	reseal(1, ops.ResealCounts{Items: 1, Resealed: 0, Left: 0, Unreadable: 1})
	manager.Away(true)
	reseal(exitTrouble, ops.ResealCounts{})
}

func TestResealUsesTheLocalRunnersKey(t *testing.T) {
	h := newTableHarness(t)
	if _, _, err := runCommand(t.Context(), "reseal", "--data", h.data); exitCode(err) != exitTrouble {
		t.Errorf("without a key: %v, want exit code %d", err, exitTrouble)
	}
}
