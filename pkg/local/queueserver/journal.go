package queueserver

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
)

const journalName = "queues.jsonl"

// ErrUnreadable is what Open returns for a journal with a line that is not one of this server's.
var ErrUnreadable = errors.New("unreadable queue journal")

// line is one line of the journal: what a change has left. A message that moves is one line, so that no kill can lose
// or double it.
type line struct {
	Queue   *queueLine // made, or with other attributes
	Deleted string     // a message's id
	Message *message   // entered a queue
	State   *stateLine
}

// stateLine is a message's new state.
type stateLine struct {
	ID string
	messageState
}

// stored is what the lines of a journal lead to.
type stored struct {
	queues   map[string]queueLine
	messages map[string]*message
	arrivals uint64
}

// apply takes a line. An error means that the line does not fit those before it.
func (s *stored) apply(l *line) error {
	if l.Queue != nil {
		s.queues[l.Queue.Name] = *l.Queue
	}
	if l.Deleted != "" {
		if s.messages[l.Deleted] == nil {
			return fmt.Errorf("no message %s to delete", l.Deleted)
		}
		delete(s.messages, l.Deleted)
	}
	if m := l.Message; m != nil {
		if _, ok := s.queues[m.Queue]; !ok || m.ID == "" {
			return fmt.Errorf("message %q of queue %q", m.ID, m.Queue)
		}
		s.arrivals++
		m.order = s.arrivals
		s.messages[m.ID] = m
	}
	if l.State != nil {
		m := s.messages[l.State.ID]
		if m == nil {
			return fmt.Errorf("no message %s to change", l.State.ID)
		}
		m.State = l.State.messageState
	}
	return nil
}

// inOrder returns the messages as they arrived.
func (s *stored) inOrder() []*message {
	return slices.SortedFunc(maps.Values(s.messages), func(a, b *message) int { return cmp.Compare(a.order, b.order) })
}

// readJournal reads the journal of a directory, without one as an empty one. It leaves out the end of the file after its
// last line: an interrupted write, which was never acknowledged.
func readJournal(dir string, log *slog.Logger) (*stored, error) {
	s := &stored{queues: map[string]queueLine{}, messages: map[string]*message{}}
	path := filepath.Join(dir, journalName)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(text) > 0 {
				log.Warn("the queue journal ended in an interrupted write, which was never acknowledged; dropped", "file", path, "bytes", len(text))
			}
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		var l line
		if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("%w: %s, line %d: %w", ErrUnreadable, path, number, err)
		}
		if err := s.apply(&l); err != nil {
			return nil, fmt.Errorf("%w: %s, line %d: %w", ErrUnreadable, path, number, err)
		}
	}
}

// journal is the file that lines are appended to. The server's lock guards it.
type journal struct {
	file    *os.File
	pending bytes.Buffer // lines that are not yet written
	err     error        // the first failure; nothing is written after it
}

// newJournal replaces the journal of a directory by one of the live state alone.
func newJournal(dir string, s *stored) (*journal, error) {
	path := filepath.Join(dir, journalName)
	file, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file}
	for _, q := range s.queues {
		j.append(line{Queue: &q})
	}
	for _, m := range s.inOrder() {
		j.append(line{Message: m})
		if j.pending.Len() > 1<<20 {
			_ = j.flush() // the last flush returns its error
		}
	}
	// Closed, since not every system replaces an open file.
	if err := errors.Join(j.flush(), j.close()); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return nil, err
	}
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	return j, err
}

// append adds a line to the next write.
func (j *journal) append(l line) {
	if err := json.MarshalWrite(&j.pending, &l, json.OmitZeroStructFields(true)); err != nil && j.err == nil {
		j.err = fmt.Errorf("write journal: %w", err)
	}
	j.pending.WriteByte('\n')
}

// flush writes the appended lines. It returns when that is handed to the operating system, which keeps it when this
// process is killed.
func (j *journal) flush() error {
	if j.err != nil || j.pending.Len() == 0 {
		return j.err
	}
	if _, err := j.pending.WriteTo(j.file); err != nil {
		j.err = fmt.Errorf("write journal: %w", err)
	}
	return j.err
}

// close puts the file on the disk and closes it.
func (j *journal) close() error { return errors.Join(j.file.Sync(), j.file.Close()) }
