package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// kept names what --fresh removes: everything but the table server's program and the lock.
func kept() []string {
	return []string{"table", "queues", "checkpoints", stateName, infoName, issuerFile}
}

// folder is a data folder that no other run uses.
type folder struct {
	dir  string
	lock *os.File
	made bool // by this run
}

// openFolder locks the folder and makes it when there is none. The lock ends with the process, however that ends.
func openFolder(dir string) (*folder, error) {
	_, err := os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder %s: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder %s: %w", dir, err)
	}
	f := &folder{dir: dir, lock: file, made: made}
	err = lock(file)
	if errors.Is(err, errInUse) {
		defer file.Close()
		return nil, inUse(dir, file)
	}
	if err == nil {
		err = f.sign()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the data folder %s: %w", dir, err), file.Close())
	}
	// A file of an earlier run must not be taken for this one's.
	if err := f.remove(infoName); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// errInUse is what lock returns for a file that another process has locked.
var errInUse = errors.New("another process holds the lock")

// inUse names the process that uses the folder.
func inUse(dir string, lock io.Reader) error {
	who := "another run"
	if pid, err := io.ReadAll(lock); err == nil && len(pid) > 0 {
		who += " (process " + strings.TrimSpace(string(pid)) + ")"
	}
	return fmt.Errorf("%s uses the data folder %s: stop it, or choose another folder with --data", who, dir)
}

// sign writes the process's id into the lock.
func (f *folder) sign() error {
	if err := f.lock.Truncate(0); err != nil {
		return err
	}
	_, err := f.lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return err
}

// clear removes the data of earlier runs and no other file of the folder.
func (f *folder) clear() error { return f.remove(kept()...) }

func (f *folder) remove(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(f.path(name)); err != nil {
			return fmt.Errorf("remove the old data: %w", err)
		}
	}
	return nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// discard removes the folder if this run made it and put nothing but the lock there.
func (f *folder) discard() {
	if f.made {
		_ = os.Remove(f.lock.Name())
		_ = os.Remove(f.dir)
	}
}

// close removes run.json, because no service runs here from now on, and unlocks the folder.
func (f *folder) close() error { return errors.Join(f.remove(infoName), f.lock.Close()) }
