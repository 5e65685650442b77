package eventsource

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// shardEnd is the checkpoint of a closed shard that was read to its end.
const shardEnd = "SHARD_END"

// filteredWriteInterval bounds how often the file is written for records that no filter let through.
const filteredWriteInterval = time.Second

// checkpoints are the sequence numbers up to which a stream source has processed each shard, or each worker's share of
// one, in a file: a line of JSON and a line with its checksum. The file is overwritten in place, by one system call that
// a kill does not divide; to replace a file takes some hundred times as long. A file of another stream, or one that a
// power failure damaged, counts as none: reading begins at the horizon again, which at-least-once delivery allows.
type checkpoints struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	held struct {
		StreamARN string            `json:"streamArn"`
		Shards    map[string]string `json:"shards"`
	}
	file      *os.File // nil until it is written
	size      int      // of the file
	unwritten bool     // the file lacks a change of held
	written   time.Time
}

func openCheckpoints(path, streamARN string, now func() time.Time) (*checkpoints, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the checkpoints: %w", err)
	}
	c := &checkpoints{path: path, now: now}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the checkpoints: %w", err)
	}
	c.size = len(data)
	held, sum, _ := bytes.Cut(data, []byte("\n")) // an earlier release wrote no sum
	if sum = bytes.TrimSpace(sum); len(sum) > 0 && string(sum) != checksum(held) {
		held = nil
	}
	if json.Unmarshal(held, &c.held) != nil || c.held.StreamARN != streamARN || c.held.Shards == nil {
		c.held.StreamARN, c.held.Shards = streamARN, map[string]string{}
	}
	return c, nil
}

// workerKey names worker i of n of a shard; a single worker has the shard's own id.
func workerKey(shard string, i, n int) string {
	if n == 1 {
		return shard
	}
	return fmt.Sprintf("%s/%d of %d", shard, i, n)
}

// begin returns the checkpoints of a shard's n workers. When the shard had another number of workers before, all of
// them begin at the lowest checkpoint of those.
func (c *checkpoints) begin(shard string, n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	positions := make([]string, n)
	for i := range positions {
		positions[i] = c.held.Shards[workerKey(shard, i, n)]
	}
	if slices.ContainsFunc(positions, func(at string) bool { return at != "" }) {
		return positions
	}
	at := c.lowest(shard)
	c.forget(shard)
	for i := range positions {
		if at != "" {
			positions[i], c.held.Shards[workerKey(shard, i, n)] = at, at
		}
	}
	return positions
}

// lowest returns the lowest checkpoint of a shard's workers, however many they are, "" when one of them has none. The
// caller holds the lock.
func (c *checkpoints) lowest(shard string) string {
	var positions []string
	workers := 0
	for key, at := range c.held.Shards {
		if key == shard {
			return at
		}
		if worker, ok := strings.CutPrefix(key, shard+"/"); ok {
			_, of, _ := strings.Cut(worker, " of ")
			workers, _ = strconv.Atoi(of) // a key that is not ours gives 0, which matches no number of positions
			positions = append(positions, at)
		}
	}
	if len(positions) != workers {
		return ""
	}
	return Lowest(positions...)
}

// at returns the checkpoint of a shard or worker, "" when there is none.
func (c *checkpoints) at(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Shards[key]
}

// set stores the checkpoint of a shard or worker; it returns when the file holds it.
func (c *checkpoints) set(key, sequence string) error { return c.move(key, sequence, 0) }

// setFiltered is set for records that the function never gets. The file may hold it later, or never: they would be
// filtered out again.
func (c *checkpoints) setFiltered(key, sequence string) error {
	return c.move(key, sequence, filteredWriteInterval)
}

// move changes a checkpoint, and writes the file unless that was done within the interval.
func (c *checkpoints) move(key, sequence string, interval time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Shards[key] == sequence {
		return nil
	}
	c.held.Shards[key], c.unwritten = sequence, true
	if interval > 0 && c.now().Sub(c.written) < interval {
		return nil
	}
	return c.write()
}

// close writes the file if it lacks a change, and closes it.
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

// end marks a shard as read to its end.
func (c *checkpoints) end(shard string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(shard)
	c.held.Shards[shard] = shardEnd
	return c.write()
}

// retain forgets the shards that the stream no longer has.
func (c *checkpoints) retain(shards map[string]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.held.Shards)
	maps.DeleteFunc(c.held.Shards, func(key, _ string) bool {
		shard, _, _ := strings.Cut(key, "/")
		return !shards[shard]
	})
	if len(c.held.Shards) == before {
		return nil
	}
	return c.write()
}

// forget removes a shard and all its workers. The caller holds the lock.
func (c *checkpoints) forget(shard string) {
	maps.DeleteFunc(c.held.Shards, func(key, _ string) bool { return key == shard || strings.HasPrefix(key, shard+"/") })
}

// write overwrites the file. The caller holds the lock.
func (c *checkpoints) write() error {
	data, err := json.Marshal(c.held, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding the checkpoints: %w", err)
	}
	if c.file == nil {
		if c.file, err = os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return fmt.Errorf("writing the checkpoints: %w", err)
		}
	}
	data = fmt.Appendf(data, "\n%s\n", checksum(data))
	for len(data) < c.size {
		data = append(data, ' ')
	}
	if _, err := c.file.WriteAt(data, 0); err != nil {
		return fmt.Errorf("writing the checkpoints: %w", err)
	}
	c.size, c.unwritten, c.written = len(data), false, c.now()
	return nil
}

func checksum(data []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) }

// Lowest returns the lowest of several positions in one stream, "" when one of them has none yet: the stream may be
// trimmed up to the lowest position of its sources.
func Lowest(positions ...string) string {
	lowest := ""
	for i, position := range positions {
		switch {
		case position == "":
			return ""
		case i == 0 || compareSequences(position, lowest) < 0:
			lowest = position
		}
	}
	return lowest
}

// compareSequences orders sequence numbers, which are decimal numbers of up to 40 digits; "" is before all of them.
func compareSequences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
