package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/commerce-integration/service/pkg/base/value"
	"github.com/commerce-integration/service/pkg/ops"
	"github.com/commerce-integration/service/pkg/ops/importer"
	"github.com/commerce-integration/service/pkg/queue"
)

// writeProducts writes n products as JSON Lines, each of about 2 KiB, and
// returns the file.
func writeProducts(t testing.TB, n int) string {
	t.Helper()
	var text bytes.Buffer
	filler := strings.Repeat("a mug of stoneware ", 100)
	for i := range n {
		id := value.DeriveID(value.MustID(testOrganization), fmt.Sprint(i))
		fmt.Fprintf(&text, `{"kind":"product","record":{"id":"%s","name":"Mug %d","description":"%s"}}`+"\n", id, i, filler)
	}
	path := filepath.Join(t.TempDir(), "products.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImportGoesOnAfterAnInterrupt(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	const products = 2_000
	path := writeProducts(t, products)
	state := filepath.Join(t.TempDir(), "state.json")

	// The queue takes two batches; during the third the user interrupts.
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var calls atomic.Int32
	direct, err := url.Parse(q.file.SQSEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(direct)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 3 {
			interrupt()
			_, _ = io.Copy(io.Discard, r.Body) // the server sees a closed connection only behind the body
			<-r.Context().Done()
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer front.Close()
	_, stderr, err := runCommand(ctx, "import", "--data", q.data, "--state", state, "--endpoint", front.URL, path)
	if err == nil || !strings.Contains(stderr, "give the same command again to go on") {
		t.Fatalf("interrupted import: got %v and %q, want a hint to go on", err, stderr)
	}
	first, err := q.sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(first) == 0 || len(first) == products {
		t.Fatalf("the interrupted import sent %d of %d records, want a part", len(first), products)
	}

	stdout, stderr, err := runCommand(t.Context(), "import", "--data", q.data, "--state", state, path)
	if err != nil {
		t.Fatalf("second import: %v", err)
	}
	second, err := q.sent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(first)+len(second) != products {
		t.Errorf("sent %d and %d records, want %d in all", len(first), len(second), products)
	}
	want := fmt.Sprintf("accepted  %d\nbefore    %d (sent by the interrupted import)\nrejected  0\n", len(second), len(first))
	if stdout != want {
		t.Errorf("summary: got %q, want %q", stdout, want)
	}
	if !strings.Contains(stderr, fmt.Sprintf("going on after row %d", len(first))) {
		t.Errorf("stderr: got %q, want the row after which it goes on", stderr)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state of a finished import: got %v, want it gone", err)
	}
}

func TestImportStartsOverWhenTheFileHasChanged(t *testing.T) {
	t.Parallel()
	q := newQueues(t)
	path := writeProducts(t, 3)
	state := filepath.Join(t.TempDir(), "state.json")
	position, err := ops.OpenPosition(ops.Checkpoint(state), "another import", time.Now(), time.Time{}, importState{Rows: 2})
	if err == nil {
		err = position.Save()
	}
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := runCommand(t.Context(), "import", "--data", q.data, "--state", state, path)
	if err != nil || stdout != "accepted  3\nrejected  0\n" {
		t.Errorf("got %q and %v, want all three records accepted", stdout, err)
	}
}

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
	q := newQueues(t)
	path := writeProducts(t, 1)
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, mapping := write("x.csv", "art;name\n1;Mug\n"), write("m.json", `{"kind":"product","columns":{"art":"sku"}}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--data", t.TempDir(), path}, "a queue with --queue-url"},
		{[]string{"--data", t.TempDir(), "--queue-url", q.file.RecordsQueueURL, path}, "--organization is required"},
		{[]string{"--data", q.data, "--organization", "acme", path}, "must be a UUID"},
		{[]string{"--data", q.data, "--site", "north", path}, "--site north: must be a UUID"},
		{[]string{"--data", q.data, "--kind", "gadget", path}, "must be one of product"},
		{[]string{"--data", q.data, path + ".gone.jsonl"}, "no such file"},
		{[]string{"--data", q.data, "gone.csv"}, "no such file"},
		{[]string{"--data", q.data, "--format", "xml", "gone.csv"}, "must be one of shopify, "},
		{[]string{"--data", t.TempDir(), path}, "--data"},
		{[]string{"--data", q.data, plain}, "the header of no known shop system: give --kind"},
		{[]string{"--data", q.data, "--kind", "product", plain}, `column "art": unknown field "art"`},
		{[]string{"--data", q.data, "--mapping", plain, plain}, "--mapping " + plain},
		{[]string{"--data", q.data, "--mapping", "gone.json", plain}, "no such file"},
		{[]string{"--data", q.data, "--mapping", mapping, plain}, "no column is the id"},
		{[]string{"--data", q.data, "--mapping", mapping, "--kind", "order", plain}, "leave out --kind"},
		{[]string{"--data", q.data, "--id-from", "sku", path}, "--id-from is for format csv"},
		{[]string{"--data", q.data, "--format", "shopify", plain}, "it is not an export of shopify"},
		{[]string{"--data", q.data, "--refused", q.data + "/no/such", path}, "--refused"},
	} {
		_, stderr, err := runCommand(t.Context(), append([]string{"import"}, c.args...)...)
		if err == nil || !strings.Contains(stderr, c.want) {
			t.Errorf("import %q: got %q, want %q", c.args, stderr, c.want)
		}
	}
}
