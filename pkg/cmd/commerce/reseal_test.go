package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/app"
	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/dynamo"
	"github.com/commerce-integration/service/pkg/local/runner"
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
	reseal := func(wantCode int, want string, flags ...string) {
		t.Helper()
		cmd := newRootCommand()
		var out, errOut bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errOut)
		cmd.SetArgs(append([]string{"reseal", "--table", h.info.TableName, "--secret", "ServiceKey", "--data", h.data, "--json"}, flags...))
		if err := cmd.ExecuteContext(t.Context()); exitCode(err) != wantCode || strings.TrimSpace(out.String()) != want {
			t.Errorf("%v: exit code %d, %v, printed %s; want %d and %s", flags, exitCode(err), err, &out, wantCode, want)
		}
	}
	manager.Put("ServiceKey", strings.Repeat("second", 11))
	status := func(wantCode int, want string) {
		t.Helper()
		queues := newQueues(t)
		stdout, stderr, err := runCommand(t.Context(), "status", "--data", t.TempDir(), "--endpoint", queues.file.SQSEndpoint,
			"--queue-url", queues.file.RecordsQueueURL, "--table", h.info.TableName, "--secret", "ServiceKey")
		if exitCode(err) != wantCode || !strings.HasSuffix(stdout, want) {
			t.Errorf("status: exit code %d, %s, printed %s; want %d and %q", exitCode(err), stderr, stdout, wantCode, want)
		}
	}
	const advice = "\n1 item under an older service key; before the next rotation: commerce reseal --table %s --secret ServiceKey\n"
	stale := fmt.Sprintf(advice, h.info.TableName)
	status(1, stale)
	reseal(1, `{"items":1,"resealed":0,"left":1,"unreadable":0}`, "--dry-run")
	reseal(0, `{"items":1,"resealed":1,"left":0,"unreadable":0}`)
	reseal(0, `{"items":1,"resealed":0,"left":0,"unreadable":0}`, "--dry-run")
	status(0, "-\n")
	if got, err := box().Open(s.StoredEndpoint(t, e.ID).Secret.Sealed, webhook.SecretPurpose(e.ID)); err != nil || string(got) != secret {
		t.Errorf("the secret opens as %q, %v; want %q", got, err, secret)
	}

	// Instances may seal under the key before for five minutes.
	now = time.Now()
	manager.Put("ServiceKey", strings.Repeat("third", 13))
	reseal(1, `{"items":1,"resealed":1,"left":0,"unreadable":0}`)

	// Two rotations without reseal in between.
	now = time.Now().Add(-time.Hour)
	manager.Put("ServiceKey", strings.Repeat("fourth", 11))
	manager.Put("ServiceKey", strings.Repeat("fifth", 13))
	reseal(1, `{"items":1,"resealed":0,"left":0,"unreadable":1}`)
	status(1, stale)
	manager.Away(true)
	reseal(2, "")
	status(2, "")
}

func TestResealUsesTheLocalRunnersKey(t *testing.T) {
	h := newTableHarness(t)
	cmd := newRootCommand()
	cmd.SetOut(&bytes.Buffer{})
	cmd.SetArgs([]string{"reseal", "--data", h.data})
	if err := cmd.ExecuteContext(t.Context()); exitCode(err) != exitTrouble {
		t.Errorf("without a key: %v, want exit code %d", err, exitTrouble)
	}
}
