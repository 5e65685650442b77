package queueserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// The files of a directory.
const (
	lockName    = "lock"
	journalName = "queues.journal"
	// compactedName is the shorter journal that takes the journal's place when it is complete.
	compactedName = journalName + ".tmp"
	// earlierPattern matches the journals of versions that numbered them.
	earlierPattern = "[0-9]*.journal"
)

// errEarlier is what Open returns for a directory that an earlier version wrote: its messages must not be left behind
// silently.
var errEarlier = errors.New("the queues were written by an earlier version of this server; run that version until they are empty, or start with empty ones")

// keepBuffer is the largest buffer that a journal keeps for its next write.
const keepBuffer = 4 << 20

// journal is the file that records are appended to. The server's lock guards it.
type journal struct {
	dir       string
	file      *os.File
	size      int64  // of the file in bytes
	compacted int64  // its size after the latest compaction, 0 before the first since Open
	pending   []byte // frames that are not yet written
	err       error  // the first failure; nothing is written after it
}

// openJournal restores the state from the journal in dir, and opens it for more after cutting off a torn tail. It makes
// the journal when there is none.
func openJournal(dir string, log *slog.Logger, s *state) (*journal, error) {
	path := filepath.Join(dir, journalName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if earlier, _ := filepath.Glob(filepath.Join(dir, earlierPattern)); len(earlier) > 0 {
			return nil, fmt.Errorf("%s: %w", dir, errEarlier)
		}
	} else if err != nil {
		return nil, fmt.Errorf("read queue state: %w", err)
	}
	intact, err := replay(data, s)
	switch {
	case errors.Is(err, errTorn) && intact > 0:
		log.Warn("queue journal ended in an interrupted write, which was never acknowledged; dropped",
			"file", path, "kept_bytes", intact)
	case err != nil && !errors.Is(err, errTorn):
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &journal{dir: dir, file: f, size: max(intact, int64(len(fileMagic)))}
	if err := j.begin(intact); err != nil {
		return nil, errors.Join(fmt.Errorf("begin to write journal: %w", err), f.Close())
	}
	return j, nil
}

// begin makes the file end with its intact bytes. Without any the file is new, or a crash came before its first bytes.
func (j *journal) begin(intact int64) error {
	if err := j.file.Truncate(intact); err != nil {
		return err
	}
	if _, err := j.file.Seek(intact, io.SeekStart); err != nil {
		return err
	}
	if intact == 0 {
		if _, err := j.file.WriteString(fileMagic); err != nil {
			return err
		}
	}
	return syncDir(j.dir)
}

// append adds a record to the next write.
func (j *journal) append(r record) { j.pending = appendFrame(j.pending, r) }

// flush writes what was appended. It returns when that is handed to the operating system, which keeps it when this
// process is killed.
func (j *journal) flush() error {
	if len(j.pending) == 0 || j.err != nil {
		return j.err
	}
	n, err := j.file.Write(j.pending)
	j.size += int64(n)
	if err != nil {
		j.err = fmt.Errorf("write journal: %w", err)
	}
	j.pending = j.pending[:0]
	if cap(j.pending) > keepBuffer {
		j.pending = nil
	}
	return j.err
}

// tooLong reports whether a journal has grown so much since its latest compaction that another one is due.
func (j *journal) tooLong(limit int64) bool {
	return j.size-j.compacted >= max(limit, j.compacted)
}

// compact replaces the file by one that holds only these records, which are the state that its own records lead to. When
// those cannot be written, the file stays and the next try comes when it has grown as much again.
func (j *journal) compact(state []record) error {
	path, next := filepath.Join(j.dir, journalName), filepath.Join(j.dir, compactedName)
	size, err := writeJournal(next, state)
	if err != nil {
		j.compacted = j.size
		return errors.Join(fmt.Errorf("compact journal: %w", err), os.Remove(next))
	}
	// Closed, since not every system replaces an open file. Until the directory is on the disk too, a power failure may
	// bring the old one back.
	if err = errors.Join(j.file.Close(), os.Rename(next, path), syncDir(j.dir)); err == nil {
		j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		j.err = fmt.Errorf("replace journal: %w", err)
	}
	j.size, j.compacted = size, size
	return j.err
}

// writeJournal writes a journal of these records to the disk and returns its size.
func writeJournal(path string, records []record) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	size = int64(len(fileMagic))
	_, _ = w.WriteString(fileMagic) // Flush returns its error
	var frame []byte
	for _, r := range records {
		frame = appendFrame(frame[:0], r)
		size += int64(len(frame))
		_, _ = w.Write(frame)
	}
	return size, errors.Join(w.Flush(), f.Sync(), f.Close())
}

// close puts the file on the disk and closes it.
func (j *journal) close() error {
	return errors.Join(j.file.Sync(), j.file.Close())
}

// syncDir makes renames and new files in dir survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open queue state: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync queue state: %w", err)
	}
	return nil
}
