package queueserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The directory holds journals and snapshots, numbered: snapshot n is the state at the beginning of journal n. The
// state is the newest snapshot and every journal from its number on; older files are left over from a compaction that
// was interrupted after its snapshot was complete. Only the newest journal can have a torn tail.
const (
	journalSuffix  = ".journal"
	snapshotSuffix = ".snapshot"
	lockName       = "lock"
	// temporarySuffix marks a snapshot that is being written.
	temporarySuffix = ".tmp"
)

func journalName(n uint64) string  { return fmt.Sprintf("%016d%s", n, journalSuffix) }
func snapshotName(n uint64) string { return fmt.Sprintf("%016d%s", n, snapshotSuffix) }

// store is the directory: the journal in use, and the newest snapshot.
type store struct {
	dir      string
	journal  *journal
	number   uint64 // of the journal in use
	snapshot int64  // size of the newest snapshot in bytes
}

// openStore restores the state from dir, applying every record to it, and leaves the newest journal open for more.
func openStore(dir string, fsync bool, log *slog.Logger, s *state) (*store, error) {
	snapshots, journals, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	st := &store{dir: dir, number: 1}
	if len(snapshots) > 0 {
		st.number = slices.Max(snapshots)
		if st.snapshot, err = loadSnapshot(filepath.Join(dir, snapshotName(st.number)), s); err != nil {
			return nil, err
		}
	}
	oldest, newest := st.number, slices.Max(append(journals, st.number))
	for n := oldest; n <= newest && len(snapshots)+len(journals) > 0; n++ {
		if !slices.Contains(journals, n) {
			return nil, fmt.Errorf("%w: %s is missing in %s", ErrCorrupt, journalName(n), dir)
		}
	}
	for ; st.number < newest; st.number++ {
		_, err := load(filepath.Join(dir, journalName(st.number)), s.apply)
		if errors.Is(err, errTorn) {
			err = fmt.Errorf("%w: %w before the newest journal", ErrCorrupt, err)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := st.resume(fsync, log, s); err != nil {
		return nil, err
	}
	return st, st.removeBefore(oldest)
}

// resume opens the newest journal for appending, after cutting off a torn tail; it makes the first one of a new store.
func (st *store) resume(fsync bool, log *slog.Logger, s *state) error {
	path := filepath.Join(st.dir, journalName(st.number))
	intact, err := load(path, s.apply)
	switch {
	// A crash between a file's creation and its first bytes leaves it empty.
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errTorn) && intact == 0:
	case errors.Is(err, errTorn):
		log.Warn("queue journal ended in an interrupted write, which was never acknowledged; dropped",
			"file", path, "kept_bytes", intact)
	case err != nil:
		return err
	}
	f, err := openJournal(path, intact)
	if err != nil {
		return err
	}
	st.journal = newJournal(f, max(intact, int64(len(fileMagic))), fsync)
	return syncDir(st.dir)
}

// openJournal opens a journal file for appending behind its intact bytes. Without any it begins a new journal.
func openJournal(path string, intact int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err = f.Truncate(intact); err == nil && intact > 0 {
		_, err = f.Seek(intact, io.SeekStart)
	} else if err == nil {
		_, err = f.WriteString(fileMagic)
	}
	if err == nil {
		return f, nil
	}
	err = errors.Join(fmt.Errorf("begin to write journal: %w", err), f.Close())
	if intact == 0 {
		err = errors.Join(err, os.Remove(path)) // it would be the newest journal, while the one before is still written
	}
	return nil, err
}

// load applies the records of one file and returns the length of its intact part.
func load(path string, apply func(record) error) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read queue state: %w", err)
	}
	intact, err := replay(data, apply)
	if err != nil {
		return intact, fmt.Errorf("%s: %w", path, err)
	}
	return intact, nil
}

// loadSnapshot applies a snapshot, all of it or none: it was renamed into place only when it was complete.
func loadSnapshot(path string, s *state) (int64, error) {
	var count uint64
	var end *snapshotEnd
	size, err := load(path, func(r record) error {
		if end != nil {
			return errors.New("a record after the end")
		}
		var ok bool
		if end, ok = r.(*snapshotEnd); !ok {
			count++
		}
		return r.apply(s)
	})
	if errors.Is(err, errTorn) || err == nil && (end == nil || end.records != count) {
		return 0, fmt.Errorf("%w: snapshot %s is not complete", ErrCorrupt, path)
	}
	return size, err
}

// rotate continues in a new journal, so that a snapshot of the present state can be written beside it. The old one is
// written to its end first: only the newest journal may have a torn tail.
func (st *store) rotate() error {
	if err := st.journal.drain(); err != nil {
		return err
	}
	f, err := openJournal(filepath.Join(st.dir, journalName(st.number+1)), 0)
	if err != nil {
		return err
	}
	st.number++
	return st.journal.rotate(f)
}

// writeSnapshot writes the records as snapshot n and removes the files that it replaces. It returns its size. It stops
// early when stop is closed.
func (st *store) writeSnapshot(n uint64, records []record, stop <-chan struct{}) (int64, error) {
	path := filepath.Join(st.dir, snapshotName(n))
	temporary := path + temporarySuffix
	size, err := writeRecords(temporary, records, stop)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("write snapshot: %w", err), os.Remove(temporary))
	}
	if err := syncDir(st.dir); err != nil {
		return 0, err
	}
	return size, st.removeBefore(n)
}

var errStopped = errors.New("stopped")

func writeRecords(path string, records []record, stop <-chan struct{}) (int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	size, _ := w.WriteString(fileMagic)
	var frame []byte
	for _, r := range records {
		select {
		case <-stop:
			return 0, errStopped
		default:
		}
		frame = appendFrame(frame[:0], r)
		size += len(frame)
		if _, err := w.Write(frame); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return int64(size), f.Sync()
}

// removeBefore removes the files that snapshot n replaces, and snapshots that were not finished.
func (st *store) removeBefore(n uint64) error {
	snapshots, journals, err := listFiles(st.dir)
	obsolete, globbed := filepath.Glob(filepath.Join(st.dir, "*"+snapshotSuffix+temporarySuffix))
	for _, old := range snapshots {
		if old < n {
			obsolete = append(obsolete, filepath.Join(st.dir, snapshotName(old)))
		}
	}
	for _, old := range journals {
		if old < n {
			obsolete = append(obsolete, filepath.Join(st.dir, journalName(old)))
		}
	}
	errs := []error{err, globbed}
	for _, path := range obsolete {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}

// listFiles returns the numbers of the snapshots and journals in dir, ascending.
func listFiles(dir string) (snapshots, journals []uint64, err error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, nil, fmt.Errorf("list queue state: %w", err)
	}
	for _, e := range entries {
		digits, suffix, _ := strings.Cut(e.Name(), ".")
		n, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case err != nil:
		case "."+suffix == snapshotSuffix:
			snapshots = append(snapshots, n)
		case "."+suffix == journalSuffix:
			journals = append(journals, n)
		}
	}
	return snapshots, journals, nil
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
