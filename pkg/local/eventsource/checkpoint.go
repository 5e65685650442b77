package eventsource

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/commerce-integration/service/pkg/base/value"
)

// filteredWriteInterval bounds how often the file is written for records that no filter let through.
const filteredWriteInterval = time.Second

// checkpoints are the sequence numbers up to which the workers of a stream source have processed it, in a file that is
// written over, which costs less than replacing it. It is smaller than a page, so that a kill leaves a write whole. A file
// of another stream, or one that a power failure damaged, counts as none: reading begins at the horizon again, which
// at-least-once delivery allows.
type checkpoints struct {
	path string

	mu   sync.Mutex
	file *os.File // nil while it is not open
	size int      // of the file
	held struct {
		StreamARN string   `json:"streamArn"`
		Workers   []string `json:"workers"`
	}
	unwritten bool // the file lacks a change of held
	written   time.Time
}

// openCheckpoints reads those of n workers. If there was another number of them before, all begin at the lowest
// checkpoint.
func openCheckpoints(path, streamARN string, n int) (*checkpoints, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the checkpoints: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the checkpoints: %w", err)
	}
	c := &checkpoints{path: path, size: len(data)}
	if json.Unmarshal(data, &c.held) != nil || c.held.StreamARN != streamARN {
		c.held.StreamARN, c.held.Workers = streamARN, nil
	}
	if len(c.held.Workers) != n {
		c.held.Workers = slices.Repeat([]string{lowest(c.held.Workers...)}, n)
	}
	return c, nil
}

// at returns the checkpoint of a worker, "" when there is none.
func (c *checkpoints) at(worker int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Workers[worker]
}

// lowest returns the lowest checkpoint of the workers, "" while one has none.
func (c *checkpoints) lowest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lowest(c.held.Workers...)
}

// set stores the checkpoint of a worker. The file holds it when set returns, unless it has been written within the
// interval: of records that the function never gets a checkpoint may come later, or never.
func (c *checkpoints) set(worker int, sequence string, interval time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Workers[worker] == sequence {
		return nil
	}
	c.held.Workers[worker], c.unwritten = sequence, true
	if interval > 0 && time.Since(c.written) < interval {
		return nil
	}
	return c.write()
}

// close writes what the file lacks, and closes it.
func (c *checkpoints) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unwritten {
		err = c.write()
	}
	if c.file != nil {
		err = errors.Join(err, c.file.Close())
		c.file = nil
	}
	return err
}

// write writes over the file. The caller holds the lock.
func (c *checkpoints) write() error {
	text, err := json.Marshal(c.held)
	if err == nil && c.file == nil {
		c.file, err = os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err == nil {
		c.size = max(c.size, len(text))
		_, err = c.file.WriteAt(fmt.Appendf(nil, "%-*s", c.size, text), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the checkpoints: %w", err)
	}
	c.unwritten, c.written = false, time.Now()
	return nil
}

// lowest returns the lowest of several positions in one stream, "" when one of them has none yet.
func lowest(positions ...string) string {
	if len(positions) == 0 {
		return ""
	}
	return slices.MinFunc(positions, value.CompareSequences)
}
