package queueserver

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The directory holds journals and snapshots, numbered: snapshot n is the state at the beginning of journal n. The state
// is the newest snapshot and every journal from its number on; older files are left over from a compaction that was
// interrupted after its snapshot was complete. Only the newest journal can have a torn tail.
const (
	journalSuffix  = ".journal"
	snapshotSuffix = ".snapshot"
	lockName       = "lock"
	// temporarySuffix marks a snapshot that is being written.
	temporarySuffix = ".tmp"
)

func journalName(n uint64) string  { return fmt.Sprintf("%016d%s", n, journalSuffix) }
func snapshotName(n uint64) string { return fmt.Sprintf("%016d%s", n, snapshotSuffix) }

// store is the directory: the journal in use and what a compaction needs to know.
type store struct {
	dir      string
	log      *slog.Logger
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
	st := &store{dir: dir, log: log, number: 1}
	if len(snapshots) > 0 {
		st.number = slices.Max(snapshots)
		if st.snapshot, err = loadSnapshot(filepath.Join(dir, snapshotName(st.number)), s); err != nil {
			return nil, err
		}
	}
	if err := st.check(snapshots, journals); err != nil {
		return nil, err
	}
	journals = slices.DeleteFunc(journals, func(n uint64) bool { return n < st.number })
	for _, n := range journals[:max(len(journals)-1, 0)] {
		_, err := loadJournal(filepath.Join(dir, journalName(n)), s)
		if errors.Is(err, errTorn) {
			err = fmt.Errorf("%w: %w before the newest journal", ErrCorrupt, err)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(journals) > 0 {
		st.number = journals[len(journals)-1]
	}
	if err := st.resume(fsync, s); err != nil {
		return nil, err
	}
	return st, st.removeLeftovers(snapshots)
}

// removeLeftovers removes what an interrupted compaction left: a snapshot that was not finished, or files that the newest
// snapshot has replaced.
func (st *store) removeLeftovers(snapshots []uint64) error {
	unfinished, err := filepath.Glob(filepath.Join(st.dir, "*"+snapshotSuffix+temporarySuffix))
	if err != nil {
		return fmt.Errorf("find unfinished snapshots: %w", err)
	}
	for _, path := range unfinished {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove unfinished snapshot: %w", err)
		}
	}
	if len(snapshots) == 0 {
		return nil
	}
	return st.removeBefore(slices.Max(snapshots))
}

// check reports a journal that is missing: that of the snapshot, or one before another.
func (st *store) check(snapshots, journals []uint64) error {
	if len(snapshots) == 0 && len(journals) == 0 {
		return nil
	}
	last := st.number
	if len(journals) > 0 {
		last = max(last, journals[len(journals)-1])
	}
	for n := st.number; n <= last; n++ {
		if !slices.Contains(journals, n) {
			return fmt.Errorf("%w: %s is missing in %s", ErrCorrupt, journalName(n), st.dir)
		}
	}
	return nil
}

// resume opens the newest journal for appending, after cutting off a torn tail; it makes the first one of a new store.
func (st *store) resume(fsync bool, s *state) error {
	path := filepath.Join(st.dir, journalName(st.number))
	intact, err := loadJournal(path, s)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errTorn) && intact == 0:
		// A crash between the file's creation and its first bytes leaves it empty.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove empty journal: %w", err)
		}
		f, err := createJournal(path)
		if err != nil {
			return err
		}
		st.journal = newJournal(f, int64(len(fileMagic)), fsync)
		return syncDir(st.dir)
	case errors.Is(err, errTorn):
		st.log.Warn("queue journal ended in an interrupted write, which was never acknowledged; dropped",
			"file", path, "kept_bytes", intact)
	case err != nil:
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if err := errors.Join(f.Truncate(intact), seekEnd(f)); err != nil {
		f.Close()
		return fmt.Errorf("cut journal to its intact part: %w", err)
	}
	st.journal = newJournal(f, intact, fsync)
	return nil
}

func seekEnd(f *os.File) error {
	_, err := f.Seek(0, 2)
	return err
}

// loadJournal applies the records of one journal and returns the length of its intact part.
func loadJournal(path string, s *state) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	intact, err := replay(data, func(r record) error { return r.apply(s) })
	if err != nil {
		return intact, fmt.Errorf("%s: %w", path, err)
	}
	return intact, nil
}

// loadSnapshot applies a snapshot, all of it or none: it was renamed into place only when it was complete.
func loadSnapshot(path string, s *state) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read snapshot: %w", err)
	}
	var count uint64
	var end *snapshotEnd
	_, err = replay(data, func(r record) error {
		if end != nil {
			return errors.New("a record after the end")
		}
		if e, ok := r.(*snapshotEnd); ok {
			end = e
		} else {
			count++
		}
		return r.apply(s)
	})
	if errors.Is(err, errTorn) || err == nil && (end == nil || end.records != count) {
		err = fmt.Errorf("%w: snapshot is not complete", ErrCorrupt)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return int64(len(data)), nil
}

// rotate goes on in a new journal, so that a snapshot of the present state can be written beside it.
// The old one is written to its end first: only the newest journal may have a torn tail.
func (st *store) rotate() error {
	if err := st.journal.drain(); err != nil {
		return err
	}
	f, err := createJournal(filepath.Join(st.dir, journalName(st.number+1)))
	if err != nil {
		return err
	}
	st.number++
	return st.journal.rotate(f)
}

// writeSnapshot writes the records as snapshot n and removes what it replaces. It returns its size. It stops early when
// stop is closed.
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
		n, err := w.Write(frame)
		if err != nil {
			return 0, err
		}
		size += n
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return int64(size), f.Sync()
}

// removeBefore removes the files that snapshot n replaces.
func (st *store) removeBefore(n uint64) error {
	snapshots, journals, err := listFiles(st.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, old := range snapshots {
		if old < n {
			errs = append(errs, os.Remove(filepath.Join(st.dir, snapshotName(old))))
		}
	}
	for _, old := range journals {
		if old < n {
			errs = append(errs, os.Remove(filepath.Join(st.dir, journalName(old))))
		}
	}
	return errors.Join(errs...)
}

// listFiles returns the numbers of the snapshots and journals in dir, ascending.
func listFiles(dir string) (snapshots, journals []uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list queue state: %w", err)
	}
	for _, e := range entries {
		digits, suffix, _ := strings.Cut(e.Name(), ".")
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue
		}
		switch "." + suffix {
		case snapshotSuffix:
			snapshots = append(snapshots, n)
		case journalSuffix:
			journals = append(journals, n)
		}
	}
	slices.Sort(snapshots)
	slices.Sort(journals)
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
