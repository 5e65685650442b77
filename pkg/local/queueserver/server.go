package queueserver

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/local/filelock"
)

const (
	// defaultMaxInFlight is Amazon's limit for a standard queue.
	defaultMaxInFlight  = 120_000
	defaultCompactBytes = 64 << 20
)

// Config holds what has a usable default. The zero value is one.
type Config struct {
	// Clock is the time that deadlines and timestamps are taken from; between two looks at it long polls and move tasks
	// sleep by the system's timers. Default time.Now.
	Clock func() time.Time
	// Region and AccountID are the parts of the queues' ARNs. Default us-east-1 and 000000000000.
	Region, AccountID string
	// Logger gets what a person should know: a torn tail, a failed compaction. Default slog.Default().
	Logger *slog.Logger
	// Sync flushes the disk before a request is acknowledged, so that a power failure loses nothing either.
	Sync bool
	// MaxInFlight is how many messages of one queue may be in flight. Default 120,000.
	MaxInFlight int
	// CompactBytes is the size of the journal in bytes from which on it is replaced by a snapshot. Default 64 MiB.
	CompactBytes int64
}

// withDefaults returns a copy in which every field is set. The receiver may be nil.
func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Region == "" {
		d.Region = "us-east-1"
	}
	if d.AccountID == "" {
		d.AccountID = "000000000000"
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.MaxInFlight == 0 {
		d.MaxInFlight = defaultMaxInFlight
	}
	if d.CompactBytes == 0 {
		d.CompactBytes = defaultCompactBytes
	}
	return d
}

// Server is the queues of one directory. Its methods are safe for concurrent use.
type Server struct {
	config Config
	lock   *os.File
	stop   chan struct{}  // closed by Close
	work   sync.WaitGroup // compactions and move tasks

	mu         sync.Mutex // guards what follows
	state      *state
	store      *store
	compacting bool
	closed     bool
}

// Open opens the queues under dir, which it creates when there is none. A second Open of the same directory fails while
// the first is in use. The error wraps ErrCorrupt when the state was damaged; a tail that a crash has torn, which was never
// acknowledged, is cut off and logged.
func Open(dir string, cfg *Config) (*Server, error) {
	config := cfg.withDefaults()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create queue state: %w", err)
	}
	lock, err := filelock.Acquire(filepath.Join(dir, lockName))
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, errors.Join(fmt.Errorf("another process serves the queues in %s: %w", dir, err), lock.Close())
	case err != nil:
		return nil, err
	}
	s := &Server{config: config, lock: lock, stop: make(chan struct{}), state: newState(config.MaxInFlight)}
	if s.store, err = openStore(dir, config.Sync, config.Logger, s.state); err != nil {
		return nil, errors.Join(fmt.Errorf("open queues in %s: %w", dir, err), lock.Close())
	}
	s.resumeTasks()
	return s, nil
}

// Close ends open long polls at once, with no messages, waits for what is being written and closes the files. Requests
// that come later are answered 503. An http.Server that serves the Handler should be shut down after this, or its
// shutdown waits for the long polls.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	s.mu.Unlock()
	s.work.Wait()
	return errors.Join(s.store.journal.close(), s.lock.Close())
}

// change is one operation's hold on the state.
type change struct {
	*state
	server *Server
	now    int64 // milliseconds since 1970
}

// write records a change and makes it.
func (c *change) write(r record) error {
	c.server.store.journal.append(r)
	if err := r.apply(c.state); err != nil {
		return fmt.Errorf("apply %T: %w", r, err)
	}
	return nil
}

func (s *Server) closing() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// update runs f alone and returns when everything that it wrote, or saw, is in the journal.
func (s *Server) update(f func(c *change) error) error {
	mark, err := s.hold(f)
	if failed := s.store.journal.commit(mark); failed != nil {
		return failed
	}
	return err
}

func (s *Server) hold(f func(c *change) error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errClosed()
	}
	if err := s.store.journal.failure(); err != nil {
		return 0, err
	}
	err := f(&change{state: s.state, server: s, now: s.config.Clock().UnixMilli()})
	s.compact()
	return s.store.journal.mark(), err
}

// refresh brings a queue up to the present: what is due becomes visible, what is too old goes.
func (c *change) refresh(q *queue) error {
	for m := q.expired(c.now); m != nil; m = q.expired(c.now) {
		if err := c.write(&messageDeleted{queue: q.id, seq: m.seq}); err != nil {
			return err
		}
	}
	q.show(c.now)
	return nil
}

// compact replaces the journal by a snapshot when it has grown too long. The state is copied at once, the snapshot
// written meanwhile. A failure is logged and tried again when the journal has grown as much once more.
func (s *Server) compact() {
	if s.compacting || s.store.journal.length() < max(s.config.CompactBytes, s.store.snapshot) {
		return
	}
	c := &change{state: s.state, server: s, now: s.config.Clock().UnixMilli()}
	for _, q := range s.state.queues {
		if err := c.refresh(q); err != nil {
			s.config.Logger.Error("queue journal was not compacted", "error", err)
			return
		}
	}
	if err := s.store.rotate(); err != nil {
		s.config.Logger.Error("queue journal was not compacted", "error", err)
		return
	}
	number, records := s.store.number, s.state.snapshot(c.now)
	s.compacting = true
	s.work.Go(func() {
		size, err := s.store.writeSnapshot(number, records, s.stop)
		if err != nil && !errors.Is(err, errStopped) {
			s.config.Logger.Error("queue journal was not compacted", "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.compacting = false
		if size > 0 {
			s.store.snapshot = size
		}
	})
}
