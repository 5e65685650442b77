package queueserver

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixture is a server whose time a test sets, called below the protocol.
type fixture struct {
	testing.TB
	*Server
	dir    string
	config Config
	now    time.Time
}

func newFixture(t testing.TB, dir string, compactBytes int64) *fixture {
	t.Helper()
	f := unopened(t, dir)
	f.config.CompactBytes = compactBytes
	f.open()
	t.Cleanup(func() { f.Close() })
	return f
}

func unopened(t testing.TB, dir string) *fixture {
	f := &fixture{TB: t, dir: dir, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.config = Config{Clock: func() time.Time { return f.now }, Logger: slog.New(slog.DiscardHandler)}
	return f
}

func (f *fixture) open() {
	f.Helper()
	var err error
	if f.Server, err = Open(f.dir, &f.config); err != nil {
		f.Fatalf("Open: %v", err)
	}
}

func (f *fixture) reopen() {
	f.Helper()
	f.must(f.Close())
	f.open()
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) call() call { return call{Context: f.Context(), base: "http://queues.test"} }

func (f *fixture) queue(name string, attributes map[string]string) {
	f.Helper()
	_, err := f.createQueue(f.call(), &createQueueInput{QueueName: name, Attributes: attributes})
	f.must(err)
}

func (f *fixture) send(queue, body string) error {
	_, err := f.sendMessage(f.call(), &sendMessageInput{ref(queue), sendEntry{MessageBody: body}})
	return err
}

func ref(queue string) queueRef { return queueRef{"http://queues.test/000000000000/" + queue} }

// texts returns the bodies of a queue's messages in the order of their arrival.
func (f *fixture) texts(queue string) []string {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.state.names[queue]
	if q == nil {
		return nil
	}
	var seqs []uint64
	for seq := range q.messages {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	var all []string
	for _, seq := range seqs {
		all = append(all, q.messages[seq].Content.Body)
	}
	return all
}

// journalOf makes a directory with one queue and three messages and returns its only journal's bytes.
func journalOf(t testing.TB) (dir string, journal []byte) {
	t.Helper()
	dir = t.TempDir()
	f := newFixture(t, dir, 0)
	f.queue("q", nil)
	for _, body := range []string{"first", "second", "third"} {
		f.must(f.send("q", body))
	}
	f.must(f.Close())
	journal, err := os.ReadFile(filepath.Join(dir, journalName))
	f.must(err)
	return dir, journal
}

// openCopy opens a directory that holds only these files.
func openCopy(t testing.TB, files map[string][]byte) (*fixture, error) {
	t.Helper()
	f := unopened(t, t.TempDir())
	for name, data := range files {
		f.must(os.WriteFile(filepath.Join(f.dir, name), data, 0o600))
	}
	var err error
	if f.Server, err = Open(f.dir, &f.config); err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func TestJournalCutAtAnyByteOpensWithWhatIsWhole(t *testing.T) {
	_, journal := journalOf(t)
	all := []string{"first", "second", "third"}
	seen := map[int]bool{}
	for length := range len(journal) + 1 {
		f, err := openCopy(t, map[string][]byte{journalName: journal[:length]})
		if err != nil {
			t.Fatalf("cut at %d of %d: %v", length, len(journal), err)
		}
		got := f.texts("q")
		if !slices.Equal(got, all[:len(got)]) {
			t.Fatalf("cut at %d of %d: got %v", length, len(journal), got)
		}
		seen[len(got)] = true
		f.queue("q", nil)
		f.must(f.send("q", "after"))
		f.reopen()
		if again := f.texts("q"); !slices.Equal(again, append(got, "after")) {
			t.Fatalf("cut at %d, one more sent, opened again: got %v", length, again)
		}
		f.must(f.Close())
	}
	if len(seen) != 4 {
		t.Errorf("the cuts left %v messages, want each of 0 to 3", seen)
	}
}

func TestJournalWithZerosAtItsEndOpens(t *testing.T) {
	_, journal := journalOf(t)
	f, err := openCopy(t, map[string][]byte{journalName: append(journal, make([]byte, 4096)...)})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.texts("q"); len(got) != 3 {
		t.Errorf("got %v, want three messages", got)
	}
}

func TestAnyDamagedByteIsAnError(t *testing.T) {
	_, journal := journalOf(t)
	for at := range journal {
		damaged := slices.Clone(journal)
		damaged[at] ^= 0x40
		if _, err := openCopy(t, map[string][]byte{journalName: damaged}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d damaged: got %v, want ErrCorrupt", at, len(journal), err)
		}
	}
}

func TestRecordsThatDoNotFitAreAnError(t *testing.T) {
	frame := func(records ...record) []byte {
		b := []byte(fileMagic)
		for _, r := range records {
			b = appendFrame(b, r)
		}
		return b
	}
	q := &queuePut{Queue: 1, Name: "q"}
	m := &messagePut{Queue: 1, Message: message{Seq: 1, Content: &content{Body: "b"}}}
	for name, journal := range map[string][]byte{
		"message of no queue":         frame(m),
		"message twice":               frame(q, m, m),
		"queue name twice":            frame(q, &queuePut{Queue: 2, Name: "q"}),
		"receive of no message":       frame(q, &messageReceived{Queue: 1, Seq: 9}),
		"delete twice":                frame(q, m, &messageDeleted{Queue: 1, Seq: 1}, &messageDeleted{Queue: 1, Seq: 1}),
		"move to no queue":            frame(q, m, &messageMoved{From: 1, Seq: 1, To: 2, Arrival: 2}),
		"attributes that are refused": frame(&queuePut{Queue: 1, Name: "q", Attributes: map[string]string{"DelaySeconds": "x"}}),
	} {
		if _, err := openCopy(t, map[string][]byte{journalName: journal}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}

func TestDirectoryIsServedOnce(t *testing.T) {
	dir := t.TempDir()
	f := newFixture(t, dir, 0)
	if s, err := Open(dir, nil); err == nil {
		s.Close()
		t.Fatal("a second Open of a directory in use succeeded")
	}
	f.reopen()
}

func TestQueuesOfAnEarlierVersionAreNotLeftBehindSilently(t *testing.T) {
	f := unopened(t, t.TempDir())
	f.must(os.WriteFile(filepath.Join(f.dir, "0000000000000007.journal"), []byte("queuelg1"), 0o600))
	if _, err := Open(f.dir, &f.config); !errors.Is(err, errEarlier) {
		t.Errorf("got %v, want %v", err, errEarlier)
	}
}

func TestACompactedJournalOfNoQueuesIsReadAgain(t *testing.T) {
	f := newFixture(t, t.TempDir(), 0)
	f.must(f.journal.compact(nil))
	f.reopen()
	f.reopen()
}

func TestCompactionBoundsTheDirectory(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	f := newFixture(t, dir, limit)
	f.queue("q", nil)
	f.must(f.send("q", "stays"))
	body := strings.Repeat("x", 1000)
	for range 1000 {
		f.must(f.send("q", body))
		out, err := f.receiveMessage(f.call(), &receiveMessageInput{queueRef: ref("q"), MaxNumberOfMessages: new(int64(10))})
		f.must(err)
		for _, m := range out.Messages {
			if m.Body == body {
				_, err := f.onReceipt((*change).acknowledge)(f.call(), &receiptInput{ref("q"), receiptEntry{ReceiptHandle: m.ReceiptHandle}})
				f.must(err)
			}
		}
	}
	f.must(f.Close())
	entries, err := os.ReadDir(dir)
	f.must(err)
	var total int64
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		f.must(err)
		total += info.Size()
		names = append(names, fmt.Sprintf("%s (%d)", e.Name(), info.Size()))
	}
	if total > 3*limit {
		t.Errorf("after 1 MB of messages came and went the directory has %d bytes, want at most %d: %v", total, 3*limit, names)
	}
	f.open()
	if got := f.texts("q"); !slices.Equal(got, []string{"stays"}) {
		t.Errorf("after compactions: got %d messages, want one", len(got))
	}
}

// A compaction that was killed leaves the journal, and beside it a part of the next one.
func TestInterruptedCompactionIsHarmless(t *testing.T) {
	_, journal := journalOf(t)
	f, err := openCopy(t, map[string][]byte{journalName: journal, compactedName: journal[:40]})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.texts("q"), []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f.must(f.journal.compact(f.state.snapshot(0)))
	f.must(f.send("q", "fourth"))
	f.reopen()
	if got, want := f.texts("q"), []string{"first", "second", "third", "fourth"}; !slices.Equal(got, want) {
		t.Errorf("after a compaction: got %v, want %v", got, want)
	}
	left, err := os.ReadDir(f.dir)
	f.must(err)
	if len(left) != 2 {
		t.Errorf("%v is left in the directory, want the lock and the journal", left)
	}
}

// A compaction that fails leaves the journal in use.
func TestFailedCompactionLosesNothing(t *testing.T) {
	f := newFixture(t, t.TempDir(), 1)
	f.must(os.Mkdir(filepath.Join(f.dir, compactedName), 0o700))
	f.queue("q", nil)
	f.must(f.send("q", "kept"))
	f.reopen()
	if got := f.texts("q"); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("got %v, want [kept]", got)
	}
}

func TestFailedWriteStopsTheServerAndLosesNothing(t *testing.T) {
	f := newFixture(t, t.TempDir(), 0)
	f.queue("q", nil)
	f.must(f.send("q", "kept"))
	f.must(f.journal.file.Close())
	for range 2 {
		if err := f.send("q", "refused"); err == nil {
			t.Fatal("a send was acknowledged that could not be written")
		}
	}
	f.Close()
	f.open()
	if got := f.texts("q"); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after the failure: got %v, want [kept]", got)
	}
}

// someRecords has one record of each kind, with every field set.
func someRecords() []record {
	c := &content{Body: "b", BodyMD5: [16]byte{1}, Trace: "t", Attributes: []attribute{{"n", attributeValue{DataType: "Binary", BinaryValue: []byte{0}}}}}
	m := message{Content: c, Seq: 300, ID: "id", Sent: 1, Visible: 2, Received: 3, First: 4, Count: 5, Arrived: 6, Source: "s"}
	return []record{
		&queuePut{Queue: 1, Name: "q", Created: 2, Modified: -3, Purged: 4, Attributes: map[string]string{"a": "1"}, Tags: map[string]string{"b": "2", "c": ""}},
		&queueRemoved{Queue: 1, At: 2},
		&queuePurged{Queue: 1, At: 2},
		&messagePut{Queue: 1, Group: "g", Message: m, InFlight: true, Delayed: true},
		&messageReceived{Queue: 1, Seq: 2, At: 3, Visible: 4},
		&visibilityChanged{Queue: 1, Seq: 2, Visible: 3},
		&messageDeleted{Queue: 1, Seq: 2},
		&messageMoved{From: 1, Seq: 2, To: 3, Arrival: 4, Source: "s", ID: "id", Sent: 5, Task: 6},
		&taskPut{task{ID: 1, UUID: "u", Source: "s", Destination: "d", Rate: 2, Status: "RUNNING", Failure: "f", Started: 3, LastSeq: 4, ToMove: 5, Moved: 6}},
		&sequences{LastSeq: 2, LastQueue: 3},
		&nameFreed{Name: "q", At: 1},
	}
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	for _, r := range someRecords() {
		b := appendRecord(nil, r)
		got, err := readRecord(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%T: got %+v, %v; want %+v", r, got, err, r)
		}
		for length := range b {
			if _, err := readRecord(b[:length]); err == nil {
				t.Errorf("%T cut to %d of %d bytes was read", r, length, len(b))
			}
		}
		if _, err := readRecord(append(b, 0)); err == nil {
			t.Errorf("%T with a byte too many was read", r)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range someRecords() {
		f.Add(appendRecord(nil, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRecord(data)
		if err != nil {
			return
		}
		again, err := readRecord(appendRecord(nil, r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%x: read %+v, written and read again %+v, %v", data, r, again, err)
		}
	})
}

func TestAChangeThatDoesNotFitTheStateIsNotRecorded(t *testing.T) {
	f := newFixture(t, t.TempDir(), 0)
	f.queue("orders", nil)
	err := f.update(func(c *change) error { return c.write(&messageDeleted{Queue: f.state.names["orders"].id, Seq: 1}) })
	if err == nil {
		t.Error("a message that does not exist was deleted")
	}
	f.must(f.send("orders", "one"))
	f.reopen()
}
