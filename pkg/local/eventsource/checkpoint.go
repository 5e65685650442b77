package eventsource

import (
	"cmp"
	"errors"
	"fmt"
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

// passEvery bounds how often the file is written for records that no filter let through.
const passEvery = time.Second

// checkpoints are the sequence numbers that a stream source is past, by shard or lane of one, kept in a file that is
// replaced in one step. A file of another stream, or one that a power failure spoiled, counts as none: reading begins at
// the horizon again, which at-least-once delivery allows.
type checkpoints struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	held struct {
		StreamARN string            `json:"streamArn"`
		Shards    map[string]string `json:"shards"`
	}
	ahead   bool // of the file
	written time.Time
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
	if json.Unmarshal(data, &c.held) != nil || c.held.StreamARN != streamARN || c.held.Shards == nil {
		c.held.StreamARN, c.held.Shards = streamARN, map[string]string{}
	}
	return c, nil
}

// laneKey names lane i of n of a shard, a shard of one lane by its own id.
func laneKey(shard string, i, n int) string {
	if n == 1 {
		return shard
	}
	return fmt.Sprintf("%s/%d of %d", shard, i, n)
}

// begin returns what each of a shard's n lanes is past. One that was read in another number of lanes goes on behind the
// hindmost of those.
func (c *checkpoints) begin(shard string, n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	positions := make([]string, n)
	for i := range positions {
		positions[i] = c.held.Shards[laneKey(shard, i, n)]
	}
	if slices.ContainsFunc(positions, func(at string) bool { return at != "" }) {
		return positions
	}
	at := c.hindmost(shard)
	c.forget(shard)
	for i := range positions {
		if at != "" {
			positions[i], c.held.Shards[laneKey(shard, i, n)] = at, at
		}
	}
	return positions
}

// hindmost returns what all lanes of a shard are past, however many they are, "" when one of them has no checkpoint. The
// caller holds the lock.
func (c *checkpoints) hindmost(shard string) string {
	var positions []string
	lanes := 0
	for key, at := range c.held.Shards {
		if key == shard {
			return at
		}
		if lane, ok := strings.CutPrefix(key, shard+"/"); ok {
			_, of, _ := strings.Cut(lane, " of ")
			lanes, _ = strconv.Atoi(of) // what is no number is of no use
			positions = append(positions, at)
		}
	}
	if len(positions) != lanes {
		return ""
	}
	return Lowest(positions...)
}

// at returns the checkpoint of a shard or lane, "" when there is none.
func (c *checkpoints) at(key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Shards[key]
}

// set stores the checkpoint of a shard or lane; it returns when the file holds it.
func (c *checkpoints) set(key, sequence string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Shards[key] == sequence {
		return nil
	}
	c.held.Shards[key] = sequence
	return c.write()
}

// pass is set for records that the function never gets. The file may hold it later, or never: they would be filtered out
// again.
func (c *checkpoints) pass(key, sequence string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Shards[key] == sequence {
		return nil
	}
	c.held.Shards[key], c.ahead = sequence, true
	if c.now().Sub(c.written) < passEvery {
		return nil
	}
	return c.write()
}

// flush writes what the file does not hold yet.
func (c *checkpoints) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ahead {
		return nil
	}
	return c.write()
}

// end marks a shard as read to its end.
func (c *checkpoints) end(shard string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(shard)
	c.held.Shards[shard] = shardEnd
	return c.write()
}

// keep forgets the shards that the stream no longer has.
func (c *checkpoints) keep(shards map[string]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.held.Shards)
	for key := range c.held.Shards {
		if shard, _, _ := strings.Cut(key, "/"); !shards[shard] {
			delete(c.held.Shards, key)
		}
	}
	if len(c.held.Shards) == before {
		return nil
	}
	return c.write()
}

// forget removes a shard and all its lanes. The caller holds the lock.
func (c *checkpoints) forget(shard string) {
	maps.DeleteFunc(c.held.Shards, func(key, _ string) bool { return key == shard || strings.HasPrefix(key, shard+"/") })
}

func (c *checkpoints) write() error {
	data, err := json.Marshal(c.held, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encoding the checkpoints: %w", err)
	}
	fresh := c.path + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return fmt.Errorf("writing the checkpoints: %w", err)
	}
	if err := os.Rename(fresh, c.path); err != nil {
		return fmt.Errorf("replacing the checkpoints: %w", err)
	}
	c.ahead, c.written = false, c.now()
	return nil
}

// Lowest returns the lowest of several positions in one stream, and "" when one of them has none yet: what every source
// is past, and so may be trimmed.
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
