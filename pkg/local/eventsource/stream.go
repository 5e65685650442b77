package eventsource

import (
	"cmp"
	"fmt"
	"time"
)

// StreamConfig is an event source mapping on a table's stream, with StartingPosition TRIM_HORIZON. No change is given up,
// whatever its age and its retries.
type StreamConfig struct {
	Checkpoints             string        // the file of the positions up to which the function has processed the stream
	BatchSize               int           // default 100
	MaximumBatchingWindow   time.Duration // how long to wait for a full batch, default not at all
	Filters                 []string      // patterns in Lambda's syntax, of which one must match
	ReportBatchItemFailures bool
	BisectBatch             bool // BisectBatchOnFunctionError
	// ShardWorkers is how many batches of the stream may be under way at a time, default 1: the mapping's
	// ParallelizationFactor, or as many times more as the table's stream had shards in DynamoDB. Records of one partition
	// key go to one worker.
	ShardWorkers int
}

// A streamSource invokes a function with the changes of a table, in order within a worker, each at least once.
type streamSource struct {
	feed     *Feed
	function Function
	cfg      StreamConfig
	filter   filter
	progress *checkpoints
	workers  []*streamWorker
}

// Add adds a source and opens its checkpoints.
func (f *Feed) Add(function Function, cfg StreamConfig) error {
	cfg.BatchSize, cfg.ShardWorkers = cmp.Or(cfg.BatchSize, 100), cmp.Or(cfg.ShardWorkers, 1)
	s := &streamSource{feed: f, function: function, cfg: cfg}
	var err error
	if s.filter, err = parseFilter(cfg.Filters); err == nil {
		s.progress, err = openCheckpoints(cfg.Checkpoints, f.cfg.StreamARN, cfg.ShardWorkers)
	}
	if err != nil {
		return fmt.Errorf("the stream source of %s: %w", function.Name, err)
	}
	for i := range cfg.ShardWorkers {
		s.workers = append(s.workers, newStreamWorker(s, i))
	}
	f.sources = append(f.sources, s)
	return nil
}

// give gives the workers the changes that pass the filter.
func (s *streamSource) give(changes []*change) {
	records := make([][]record, len(s.workers))
	for _, c := range changes {
		if s.filter.passes(c.from.NewImage) {
			i := c.part(len(s.workers))
			r := c.record()
			r.shard = fmt.Sprintf("shard-%d-of-%d", i, len(s.workers)) // records of a worker come in order
			records[i] = append(records[i], r)
		}
	}
	for i, w := range s.workers {
		w.feed(records[i], changes[len(changes)-1].id)
	}
}
