package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/commerce/importer"
	"github.com/commerce-integration/service/pkg/queue"
)

// scriptedQueue is an SQS endpoint whose answers to batches a test writes: of
// each call, which entry fails and whether by the sender's fault.
type scriptedQueue struct {
	failures []map[string]bool // entry ID to SenderFault
	ids      [][]string        // of the entries of each call
}

// ServeHTTP implements [http.Handler] with SQS's JSON protocol.
func (q *scriptedQueue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type entry struct {
		ID string `json:"Id"`
	}
	var in struct{ Entries []entry }
	if err := json.UnmarshalRead(r.Body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var ids []string
	for _, e := range in.Entries {
		ids = append(ids, e.ID)
	}
	q.ids = append(q.ids, ids)
	type failure struct {
		ID            string `json:"Id"`
		SenderFault   bool
		Code, Message string
	}
	failed := []failure{}
	if len(q.ids) <= len(q.failures) {
		for id, sender := range q.failures[len(q.ids)-1] {
			failed = append(failed, failure{id, sender, "Code", "why"})
		}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	json.MarshalWrite(w, map[string]any{"Successful": []entry{}, "Failed": failed})
}

func TestSenderRepeatsOnlyWhatTheQueueWasTooBusyFor(t *testing.T) {
	t.Parallel()
	busy, refused := map[string]bool{"1": false}, map[string]bool{"0": true}
	for name, c := range map[string]struct {
		failures []map[string]bool
		calls    [][]string
		fails    string
	}{
		"all taken":    {nil, [][]string{{"0", "1"}}, ""},
		"one too many": {[]map[string]bool{busy}, [][]string{{"0", "1"}, {"1"}}, ""},
		"one refused":  {[]map[string]bool{refused}, [][]string{{"0", "1"}}, "queue q: send messages: Code: why"},
		"never":        {[]map[string]bool{busy, busy, busy, busy, busy}, [][]string{{"0", "1"}, {"1"}, {"1"}, {"1"}, {"1"}}, "Code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripted := &scriptedQueue{failures: c.failures}
			server := httptest.NewServer(scripted)
			defer server.Close()
			client, err := newSQSClient(t.Context(), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			send := sendTo(queue.New(client, "q"), "q", value.ID{})
			_, err = send(t.Context(), importer.Batch{Messages: [][]byte{[]byte("a"), []byte("b")}})
			if diff := cmp.Diff(c.calls, scripted.ids); diff != "" {
				t.Errorf("entries of each call (-want +got):\n%s", diff)
			}
			if got := fmt.Sprint(err); (c.fails == "") != (err == nil) || !strings.Contains(got, c.fails) {
				t.Errorf("got error %v, want %q", err, c.fails)
			}
		})
	}
}

func TestImportAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("products.jsonl", `{"kind":"product","record":{"id":"`+testOrganization+`","name":"Mug"}}`)
	plain, mapping := write("x.csv", "art;name\n1;Mug\n"), write("m.json", `{"kind":"product","columns":{"art":"sku"}}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--queue-url", "", path}, "missing [organization]"},
		{[]string{"--organization", "acme", path}, "must be a UUID"},
		{[]string{"--site", "north", path}, "--site north: must be a UUID"},
		{[]string{"--kind", "gadget", path}, "must be one of product"},
		{[]string{path + ".gone.jsonl"}, "no such file"},
		{[]string{"--format", "xml", "gone.csv"}, "must be one of shopify, "},
		{[]string{plain}, "has the header of no known shop system: it needs a kind"},
		{[]string{dir}, "is a directory"},
		{[]string{mapping}, "does not tell its format"},
		{[]string{"--kind", "product", plain}, `column "art": unknown field "art"`},
		{[]string{"--mapping", plain, plain}, "--mapping " + plain},
		{[]string{"--mapping", "gone.json", plain}, "no such file"},
		{[]string{"--mapping", mapping, plain}, "no column is the id"},
		{[]string{"--mapping", mapping, "--kind", "order", plain}, "leave out --kind"},
		{[]string{"--format", "shopify", plain}, "it is not an export of shopify"},
		{[]string{"--refused", dir + "/no/such", path}, "--refused"},
		{[]string{"--refused", dir + "/refused", path, path}, "import each file by itself"},
	} {
		_, stderr, err := runCommand(t.Context(), append([]string{"import", "--dry-run"}, c.args...)...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("import %q: got %q, want %q", c.args, stderr, c.want)
		}
	}
}
