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
		all = append(all, q.messages[seq].body)
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
	journal, err := os.ReadFile(filepath.Join(dir, journalName(1)))
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
		f, err := openCopy(t, map[string][]byte{journalName(1): journal[:length]})
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
	f, err := openCopy(t, map[string][]byte{journalName(1): append(journal, make([]byte, 4096)...)})
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
		if _, err := openCopy(t, map[string][]byte{journalName(1): damaged}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d damaged: got %v, want ErrCorrupt", at, len(journal), err)
		}
	}
}

func TestLostFilesAreAnError(t *testing.T) {
	_, journal := journalOf(t)
	snapshot := compacted(t)
	cut := snapshot[:len(snapshot)-1]
	end := len(appendFrame(nil, &snapshotEnd{records: 3, lastSeq: 2, lastQueue: 1}))
	for name, files := range map[string]map[string][]byte{
		"the first journal":          {journalName(2): journal},
		"a journal between":          {journalName(1): journal, journalName(3): journal[:8]},
		"the snapshot's journal":     {snapshotName(2): snapshot},
		"the end of the snapshot":    {snapshotName(2): cut, journalName(2): journal[:8]},
		"the snapshot's last record": {snapshotName(2): snapshot[:len(snapshot)-end], journalName(2): journal[:8]},
		"the tail of a full journal": {journalName(1): journal[:len(journal)-1], journalName(2): journal[:8]},
	} {
		if _, err := openCopy(t, files); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s is lost: got %v, want ErrCorrupt", name, err)
		}
	}
}

// compacted returns a snapshot of one queue with two messages.
func compacted(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	f := newFixture(t, dir, 1)
	f.queue("q", nil)
	f.must(f.send("q", "first"))
	f.work.Wait()
	f.must(f.send("q", "second"))
	f.work.Wait()
	f.must(f.Close())
	_, journals, err := listFiles(dir)
	f.must(err)
	last := journals[len(journals)-1]
	data, err := os.ReadFile(filepath.Join(dir, snapshotName(last)))
	f.must(err)
	return data
}

func TestRecordsThatDoNotFitAreAnError(t *testing.T) {
	frame := func(records ...record) []byte {
		b := []byte(fileMagic)
		for _, r := range records {
			b = appendFrame(b, r)
		}
		return b
	}
	q := &queuePut{queue: 1, name: "q"}
	m := &messagePut{queue: 1, message: message{seq: 1, content: &content{body: "b"}}}
	for name, journal := range map[string][]byte{
		"message of no queue":         frame(m),
		"message twice":               frame(q, m, m),
		"queue name twice":            frame(q, &queuePut{queue: 2, name: "q"}),
		"receive of no message":       frame(q, &messageReceived{queue: 1, seq: 9}),
		"delete twice":                frame(q, m, &messageDeleted{queue: 1, seq: 1}, &messageDeleted{queue: 1, seq: 1}),
		"move to no queue":            frame(q, m, &messageMoved{from: 1, seq: 1, to: 2, arrival: 2}),
		"attributes that are refused": frame(&queuePut{queue: 1, name: "q", attributes: map[string]string{"DelaySeconds": "x"}}),
	} {
		if _, err := openCopy(t, map[string][]byte{journalName(1): journal}); !errors.Is(err, ErrCorrupt) {
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

func TestCompactionBoundsTheDirectory(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	f := newFixture(t, dir, limit)
	f.queue("q", nil)
	f.must(f.send("q", "stays"))
	body := strings.Repeat("x", 1000)
	for range 1000 {
		f.work.Wait() // or Close would break off the last compaction
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
	f.work.Wait()
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

// A compaction that was killed leaves a snapshot half written, or whole with the files that it replaces.
func TestInterruptedCompactionIsHarmless(t *testing.T) {
	_, journal := journalOf(t)
	next := appendFrame([]byte(fileMagic), &messageDeleted{queue: 1, seq: 1})
	whole := []byte(fileMagic)
	state := newState(1)
	if _, err := replay(journal, func(r record) error { return r.apply(state) }); err != nil {
		t.Fatal(err)
	}
	for _, r := range state.snapshot(0) {
		whole = appendFrame(whole, r)
	}
	for name, files := range map[string]map[string][]byte{
		"before the snapshot": {journalName(1): journal, journalName(2): next},
		"in the snapshot":     {journalName(1): journal, journalName(2): next, snapshotName(2) + ".tmp": whole[:40]},
		"after the snapshot":  {journalName(1): journal, journalName(2): next, snapshotName(2): whole},
		"after the clean-up":  {journalName(2): next, snapshotName(2): whole},
	} {
		f, err := openCopy(t, files)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := f.texts("q"), []string{"second", "third"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		left, err := os.ReadDir(f.dir)
		f.must(err)
		if len(left) != 3 { // the lock and either two journals or a snapshot and its journal
			t.Errorf("%s: %v is left in the directory, want three files", name, left)
		}
	}
}

func TestFailedWriteStopsTheServerAndLosesNothing(t *testing.T) {
	f := newFixture(t, t.TempDir(), 0)
	f.queue("q", nil)
	f.must(f.send("q", "kept"))
	f.must(f.store.journal.file.Close())
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
	c := &content{body: "b", bodyMD5: [16]byte{1}, trace: "t", attributes: []attribute{{name: "n", dataType: "Binary", value: "\x00", binary: true}}}
	m := message{content: c, seq: 300, id: "id", sent: 1, visible: 2, received: 3, first: 4, count: 5, arrived: 6, source: "s"}
	return []record{
		&queuePut{queue: 1, name: "q", created: 2, modified: -3, purged: 4, attributes: map[string]string{"a": "1"}, tags: map[string]string{"b": "2", "c": ""}},
		&queueRemoved{queue: 1, at: 2},
		&queuePurged{queue: 1, at: 2},
		&messagePut{queue: 1, group: "g", message: m, inFlight: true, delayed: true},
		&messageReceived{queue: 1, seq: 2, at: 3, visible: 4},
		&visibilityChanged{queue: 1, seq: 2, visible: 3},
		&messageDeleted{queue: 1, seq: 2},
		&messageMoved{from: 1, seq: 2, to: 3, arrival: 4, source: "s", id: "id", sent: 5, task: 6},
		&taskPut{task{id: 1, uuid: "u", source: "s", destination: "d", rate: 2, status: "RUNNING", failure: "f", started: 3, lastSeq: 4, toMove: 5, moved: 6}},
		&snapshotEnd{records: 1, lastSeq: 2, lastQueue: 3},
		&nameFreed{name: "q", at: 1},
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
