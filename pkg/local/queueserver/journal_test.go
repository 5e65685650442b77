package queueserver

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
)

// texts returns the bodies of a queue's messages in the order of their arrival.
func (s *Server) texts(queue string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue]
	if q == nil {
		return nil
	}
	var all []string
	for _, m := range q.inPhase(phaseReady) {
		all = append(all, m.Body)
	}
	return all
}

// journalOf returns the journal of a server with one queue and three messages.
func journalOf(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	h := inBubble(t, dir, nil)
	queue := h.queue("q")
	for _, body := range []string{"first", "second", "third"} {
		h.send(queue, "", body)
	}
	journal, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	return journal
}

// openFile opens a directory that holds only this file.
func openFile(t testing.TB, name string, data []byte) (s *Server, dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, &Config{Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, dir, err
}

func TestJournalCutAtAnyByteIsReadAsFarAsItIsWhole(t *testing.T) {
	journal := journalOf(t)
	dir := t.TempDir()
	all, seen := []string{"first", "second", "third"}, map[int]bool{}
	for length := range len(journal) + 1 {
		if err := os.WriteFile(filepath.Join(dir, journalName), journal[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := readJournal(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", length, len(journal), err)
		}
		var got []string
		for _, m := range s.inOrder() {
			got = append(got, m.Body)
		}
		if !slices.Equal(got, all[:len(got)]) {
			t.Fatalf("cut at %d of %d: got %v", length, len(journal), got)
		}
		seen[len(got)] = true
	}
	if len(seen) != 4 {
		t.Errorf("cuts left %v messages, want 0 to 3", seen)
	}
}

func TestATornLastLineIsDroppedForGood(t *testing.T) {
	journal := journalOf(t)
	_, dir, err := openFile(t, journalName, journal[:len(journal)-1])
	if err != nil {
		t.Fatal(err)
	}
	h := inBubble(t, dir, nil)
	h.send(h.queue("q"), "", "later")
	if got := open(t, dir, nil).texts("q"); !slices.Equal(got, []string{"first", "second", "later"}) {
		t.Errorf("got %v, want what was whole and the later message", got)
	}
}

func TestUnreadableLinesAreAnError(t *testing.T) {
	const q, m = `{"Queue":{"Name":"q"}}`, `{"Message":{"ID":"m","Queue":"q","Body":"b"}}`
	for name, lines := range map[string][]string{
		"no JSON":                     {q, `{"Message":`, m},
		"unknown field":               {q, `{"Tags":{}}`},
		"message of no queue":         {m},
		"state of no message":         {q, `{"State":{"ID":"m","Count":1}}`},
		"deletion of no message":      {q, m, `{"Deleted":"m"}`, `{"Deleted":"m"}`},
		"attributes that are refused": {`{"Queue":{"Name":"q","Attributes":{"DelaySeconds":"x"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			journal := []byte(strings.Join(lines, "\n") + "\n")
			_, dir, err := openFile(t, journalName, journal)
			if !errors.Is(err, ErrUnreadable) {
				t.Errorf("got %v, want ErrUnreadable", err)
			}
			if left, err := os.ReadFile(filepath.Join(dir, journalName)); err != nil || string(left) != string(journal) {
				t.Errorf("the journal was changed to %q, %v", left, err)
			}
		})
	}
}

// A start that was killed leaves the journal, and beside it a part of the next one.
func TestAStartLeavesOnlyTheLiveState(t *testing.T) {
	dir := t.TempDir()
	h := inBubble(t, dir, nil)
	queue := h.queue("q")
	h.send(queue, "", numbered(strings.Repeat("x", 1000), 100)...)
	for _, m := range h.drain(queue) {
		h.delete(queue, m)
	}
	h.send(queue, "", "stays")
	if err := errors.Join(h.server.Close(), os.WriteFile(filepath.Join(dir, journalName+".tmp"), []byte(`{"Queue":`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir, nil).texts("q"); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("got %d messages, want one", len(got))
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v: want the journal alone", left, err)
	}
	if info, err := left[0].Info(); err != nil || info.Size() > 1000 {
		t.Errorf("the journal has %d bytes, %v; want the queue and one message", info.Size(), err)
	}
}

func TestFailedWriteStopsTheServerAndLosesNothing(t *testing.T) {
	dir := t.TempDir()
	h := inBubble(t, dir, &Config{Logger: slog.New(slog.DiscardHandler)})
	queue := h.queue("q")
	h.send(queue, "", "kept")
	file := h.server.journal.file
	readOnly, err := os.Open(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	h.server.journal.file = readOnly
	for range 2 {
		_, err := h.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("refused")})
		wantCode(t, err, "InternalFailure")
	}
	if err := errors.Join(file.Close(), h.server.Close()); err != nil {
		t.Fatal(err)
	}
	if got := open(t, dir, nil).texts("q"); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after the failure: got %v, want [kept]", got)
	}
}

// The journal's lines are what later versions read.
func TestJournalIsLinesOfJSON(t *testing.T) {
	const journal = `{"Queue":{"Name":"q","Created":1,"Modified":2,"Attributes":{"DelaySeconds":"5"}}}
{"Message":{"ID":"a","Queue":"q","Body":"b\n","Group":"g","Attributes":{"n":{"DataType":"Binary","BinaryValue":"AQ=="}},"Sent":4102444800000,"Source":"s","Arrived":1,"State":{"Visible":4102444800001,"Received":3,"First":2,"Count":2}}}
`
	s, dir, err := openFile(t, journalName, []byte(journal+`{"Message":{"ID":"x","Queue":"q"}}`+"\n"+`{"Deleted":"x"}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(journal, string(got)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}
