package queueserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/commerce-integration/service/pkg/local/filelock"
)

// Config holds settings with defaults. The zero value is usable.
type Config struct {
	// Clock is the time that deadlines and timestamps are taken from; between two looks at it long polls and move tasks
	// sleep by the system's timers. Default time.Now.
	Clock func() time.Time
	// Region and AccountID are the parts of the queues' ARNs. Default us-east-1 and 000000000000.
	Region, AccountID string
	// Logger logs a torn tail and failed compactions. Default slog.Default().
	Logger *slog.Logger
	// MaxInFlight is how many messages of one queue may be in flight. Default 120,000.
	MaxInFlight int
	// CompactBytes is how many bytes the journal grows before it is compacted. Default 64 MiB.
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
	d.Region = cmp.Or(d.Region, "us-east-1")
	d.AccountID = cmp.Or(d.AccountID, "000000000000")
	d.Logger = cmp.Or(d.Logger, slog.Default())
	d.MaxInFlight = cmp.Or(d.MaxInFlight, 120_000) // Amazon's limit for a standard queue
	d.CompactBytes = cmp.Or(d.CompactBytes, 64<<20)
	return d
}

// Server is the queues of one directory. Its methods are safe for concurrent use.
type Server struct {
	config Config
	lock   *os.File
	stop   chan struct{}  // closed by Close
	tasks  sync.WaitGroup // move tasks

	mu      sync.Mutex // guards the fields below
	state   *state
	journal *journal
	closed  bool
}

// Open opens the queues under dir, which it creates when there is none. A second Open of the same directory fails while
// the first is in use. The error wraps ErrCorrupt when the state was damaged; a tail that a crash has torn, which was
// never acknowledged, is cut off and logged.
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
	if s.journal, err = openJournal(dir, config.Logger, s.state); err != nil {
		return nil, errors.Join(fmt.Errorf("open queues in %s: %w", dir, err), lock.Close())
	}
	s.resumeTasks()
	return s, nil
}

// Close ends open long polls at once, with no messages, waits for writes under way and closes the files. Requests that
// come later are answered 503. An http.Server that serves the Handler should be shut down after this, or its shutdown
// waits for the long polls.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.stop)
	s.mu.Unlock()
	s.tasks.Wait()
	return errors.Join(s.journal.close(), s.lock.Close())
}

// change is the state while one operation holds it.
type change struct {
	*state
	server *Server
	now    int64 // milliseconds since 1970
}

// write makes a change and records it. One that does not fit the state must not get into the journal, which could not be
// replayed then.
func (c *change) write(r record) error {
	if err := r.apply(c.state); err != nil {
		return fmt.Errorf("apply %T: %w", r, err)
	}
	c.server.journal.append(r)
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

// update runs f alone and returns when everything that it wrote is in the journal.
func (s *Server) update(f func(c *change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if s.journal.err != nil {
		return s.journal.err
	}
	c := &change{state: s.state, server: s, now: s.config.Clock().UnixMilli()}
	err := f(c)
	if failed := s.journal.flush(); failed != nil {
		return failed
	}
	if s.journal.tooLong(s.config.CompactBytes) {
		if failed := s.journal.compact(s.state.snapshot(c.now)); failed != nil {
			s.config.Logger.Error("queue journal was not compacted", "error", failed)
		}
	}
	return err
}

// onQueue is update for the queue that a URL names, brought up to the present.
func (s *Server) onQueue(ref queueRef, f func(c *change, q *queue) error) error {
	return s.update(func(c *change) error {
		q, err := c.find(ref.QueueURL)
		if err != nil {
			return err
		}
		return f(c, q)
	})
}

// refresh brings a queue up to the present: it deletes the messages that are too old and shows those that are due.
func (c *change) refresh(q *queue) error {
	for m := q.expired(c.now); m != nil; m = q.expired(c.now) {
		if err := c.write(&messageDeleted{Queue: q.id, Seq: m.Seq}); err != nil {
			return err
		}
	}
	q.showDue(c.now)
	return nil
}

// Release makes every message visible that a consumer of the queue has received and not deleted, whatever timeout it
// has left, and returns how many. It is for the start of a consumer when all earlier ones are known to be dead: SQS
// itself has no such call and lets the timeouts run out.
func (s *Server) Release(queueURL string) (released int, err error) {
	err = s.onQueue(queueRef{queueURL}, func(c *change, q *queue) error {
		inFlight := q.inPhase(phaseInFlight, c.lastSeq)
		released = len(inFlight)
		for _, seq := range inFlight {
			if err := c.write(&visibilityChanged{Queue: q.id, Seq: seq, Visible: c.now}); err != nil {
				return err
			}
		}
		return nil
	})
	return released, err
}
