package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/sealed"
	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce"
	"github.com/commerce-integration/service/pkg/queue"
	"github.com/commerce-integration/service/pkg/sender"
)

func TestSendersKeepsTheKeysOfOneOrganization(t *testing.T) {
	h := newTableHarness(t)
	serviceKey := make([]byte, sealed.KeySize)
	state := `{"serviceKey":"` + base64.StdEncoding.EncodeToString(serviceKey) + `"}`
	if err := os.WriteFile(filepath.Join(h.data, "state.json"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	box, err := sealed.NewBox(serviceKey)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (got sendersResult) {
		t.Helper()
		out, errOut, err := runCommand(t.Context(), append([]string{"senders", args[0], "--data", h.data, "--json"}, args[1:]...)...)
		if err == nil {
			err = json.Unmarshal([]byte(out), &got)
		}
		if err != nil {
			t.Fatalf("%q: %v, %s", args, err, errOut)
		}
		return got
	}
	org := func(text string) value.ID {
		id, err := value.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	other := value.NewID()
	if got := run("show"); len(got.Keys) != 0 || got.OrganizationID != org(testOrganization) {
		t.Errorf("at first: %+v, want no keys", got)
	}
	foreign := run("rotate", "--organization", other.String())
	var made []sendersResult
	for range 3 {
		made = append(made, run("rotate"))
	}
	got := run("show")
	if len(got.Keys) != 2 || got.Key != "" || got.Keys[0].ID != made[2].Keys[0].ID || got.Keys[1].ID != made[1].Keys[0].ID {
		t.Errorf("after three rotations: %+v, want the newest two and no text", got)
	}
	stored, err := h.table.SenderKeys(t.Context(), org(testOrganization))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := stored.Open(box.Open)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if printed, err := sender.ParseKey(made[2-i].Key); err != nil || string(printed) != string(key) {
			t.Errorf("key %d: printed %s, %v; stored %x", i, made[2-i].Key, err, key)
		}
	}
	if got := run("remove"); len(got.Keys) != 0 {
		t.Errorf("removed: %+v", got)
	}
	if got := run("show", "--organization", other.String()); len(got.Keys) != 1 || got.Keys[0].ID != foreign.Keys[0].ID {
		t.Errorf("another organization's after the removal: %+v, want %+v", got, foreign.Keys)
	}
	out, _, err := runCommand(t.Context(), "senders", "rotate", "--data", h.data)
	if err != nil || !regexp.MustCompile(`(?m)^new key, shown once: [0-9a-f]{64}$`).MatchString(out) {
		t.Errorf("as text: %v, %s", err, out)
	}
	for _, args := range [][]string{{"rotate", "--table", "t"}, {"rotate", "--secret", "s"}, {"show", "--organization", "x"}, {"show", "more"}} {
		if out, _, err := runCommand(t.Context(), append([]string{"senders", args[0], "--data", h.data}, args[1:]...)...); err == nil {
			t.Errorf("%q succeeds: %s", args, out)
		}
	}
}

// received are the messages of a queue, with their attributes.
func (q *queues) received(t *testing.T, url string) map[string]string {
	t.Helper()
	signatures := map[string]string{}
	out, err := q.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range out.Messages {
		signatures[*m.Body] = aws.ToString(m.MessageAttributes[sender.Attribute].StringValue)
	}
	return signatures
}

func TestRefusedRecordsAreSentBackWithTheirSignatures(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	signed, unsigned := nameless(testOrganization, value.NewID()), nameless(testOrganization, value.NewID())
	rejects := queue.NewRejects(queue.New(q.client, q.dlqs["Records"]))
	err := rejects.Reject(t.Context(), "m", []commerce.Refusal{
		{Reason: "r", Message: "m", Body: []byte(signed), Signature: sender.Sign([]byte("key"), signed)}, {Reason: "r", Message: "m", Body: []byte(unsigned)},
	})
	if err != nil {
		t.Fatal(err)
	}
	q.rejects(t, "--replay")
	got := q.received(t, q.file.RecordsQueueURL)
	if len(got) != 2 || got[signed] != sender.Sign([]byte("key"), signed) || got[unsigned] != "" {
		t.Errorf("sent back with the signatures %q", got)
	}
}

func TestImportAndTriggerSignTheirMessages(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	key := strings.Repeat("0f", 32)
	file, keyFile := filepath.Join(t.TempDir(), "a.jsonl"), filepath.Join(t.TempDir(), "key")
	for path, text := range map[string]string{
		file: `{"kind":"product","op":"put","record":{"id":"` + value.NewID().String() + `","name":"Tea"}}` + "\n", keyFile: key + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"import", file}, {"trigger", "order.paid"}} {
		if _, errOut, err := runCommand(t.Context(), append(args, "--data", q.data, "--organization", testOrganization, "--sender-key", keyFile)...); err != nil {
			t.Fatalf("%q: %v, %s", args, err, errOut)
		}
	}
	raw, err := sender.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	got := q.received(t, q.file.RecordsQueueURL)
	for body, signature := range got {
		if signature != sender.Sign(raw, body) {
			t.Errorf("%s has the signature %q", body, signature)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d messages, want 2", len(got))
	}
	if _, errOut, err := runCommand(t.Context(), "import", "--data", q.data, "--sender-key", file, file); err == nil || strings.Contains(errOut, "Tea") {
		t.Errorf("with a file that is no key: %v, %s", err, errOut)
	}
}
