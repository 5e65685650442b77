package eventsource

import (
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json"
)

// shardEnd is the checkpoint of a closed shard that was read to its end.
const shardEnd = "SHARD_END"

// checkpoints are the sequence numbers that a stream source is past, by shard, kept in a file that is replaced in one
// step. A file of another stream, or one that a power failure spoiled, counts as none: reading begins at the horizon
// again, which at-least-once delivery allows.
type checkpoints struct {
	path string

	mu   sync.Mutex
	held struct {
		StreamARN string            `json:"streamArn"`
		Shards    map[string]string `json:"shards"`
	}
}

func openCheckpoints(path, streamARN string) (*checkpoints, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the checkpoints: %w", err)
	}
	c := &checkpoints{path: path}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the checkpoints: %w", err)
	}
	if json.Unmarshal(data, &c.held) != nil || c.held.StreamARN != streamARN || c.held.Shards == nil {
		c.held.StreamARN, c.held.Shards = streamARN, map[string]string{}
	}
	return c, nil
}

// at returns the checkpoint of a shard, "" when there is none.
func (c *checkpoints) at(shard string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.Shards[shard]
}

// set stores a shard's checkpoint; it returns when the file holds it.
func (c *checkpoints) set(shard, sequence string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held.Shards[shard] == sequence {
		return nil
	}
	c.held.Shards[shard] = sequence
	return c.write()
}

// keep forgets the shards that the stream no longer has.
func (c *checkpoints) keep(shards map[string]bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := len(c.held.Shards)
	for shard := range c.held.Shards {
		if !shards[shard] {
			delete(c.held.Shards, shard)
		}
	}
	if len(c.held.Shards) == before {
		return nil
	}
	return c.write()
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

// compareSequences orders sequence numbers, which are decimal numbers of up to 40 digits.
func compareSequences(a, b string) int {
	x, okX := new(big.Int).SetString(a, 10)
	y, okY := new(big.Int).SetString(b, 10)
	if !okX || !okY {
		return 0
	}
	return x.Cmp(y)
}
