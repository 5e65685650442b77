package queueserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"
)

const (
	accountID = "000000000000"
	arnPrefix = "arn:aws:sqs:us-east-1:" + accountID + ":"
)

// Config holds settings with defaults. The zero value is usable.
type Config struct {
	// Clock is the time that deadlines and timestamps are taken from; between two looks at it long polls and move tasks
	// sleep by the system's timers. Default time.Now.
	Clock func() time.Time
	// Logger logs a dropped end of the journal and failed requests. Default slog.Default().
	Logger *slog.Logger
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
	d.Logger = cmp.Or(d.Logger, slog.Default())
	return d
}

// Server is the queues of one directory. Its methods are safe for concurrent use.
type Server struct {
	config  Config
	stop    chan struct{}  // closed by Close
	running sync.WaitGroup // move tasks

	mu      sync.Mutex // guards the fields below
	queues  map[string]*queue
	tasks   map[string]*task // the latest of each source
	journal *journal
	closed  bool
}

// Open opens the queues under dir, which it creates when there is none. The error wraps ErrUnreadable when the journal
// there cannot be read.
func Open(dir string, cfg *Config) (*Server, error) {
	s := &Server{config: cfg.withDefaults(), stop: make(chan struct{}), queues: map[string]*queue{}, tasks: map[string]*task{}}
	if err := s.open(dir); err != nil {
		return nil, fmt.Errorf("open queues in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	old, err := readJournal(dir, s.config.Logger)
	if err != nil {
		return err
	}
	for _, q := range old.queues {
		set, err := settingsOf(q.Attributes)
		if err != nil {
			return fmt.Errorf("%w: queue %q: %w", ErrUnreadable, q.Name, err)
		}
		s.queues[q.Name] = newQueue(q, set)
	}
	s.journal, err = newJournal(dir, old)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	for _, m := range old.inOrder() {
		s.queues[m.Queue].add(m, s.config.Clock().UnixMilli())
	}
	return nil
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
	s.running.Wait()
	return s.journal.close()
}

// change is the queues while one operation holds them.
type change struct {
	*Server
	now int64 // milliseconds since 1970
}

// update runs f alone and returns when everything that it changed is in the journal.
func (s *Server) update(f func(c change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if s.journal.err != nil {
		return s.journal.err
	}
	err := f(change{s, s.config.Clock().UnixMilli()})
	return cmp.Or(s.journal.flush(), err)
}

// onQueue is update for the queue that a URL names, brought up to the present.
func (s *Server) onQueue(url *string, f func(c change, q *queue) error) error {
	if url == nil {
		return missing("QueueUrl")
	}
	return s.update(func(c change) error {
		q := c.queues[path.Base(*url)]
		if q == nil {
			return errNoQueue()
		}
		c.refresh(q)
		return f(c, q)
	})
}

// refresh brings a queue up to the present: it deletes the messages that are too old and shows those that are due.
func (c change) refresh(q *queue) {
	for m := q.expired(c.now); m != nil; m = q.expired(c.now) {
		c.delete(q, m)
	}
	q.showDue(c.now)
}

func (c change) send(q *queue, m *message) {
	q.add(m, c.now)
	c.journal.append(line{Message: m})
}

func (c change) delete(q *queue, m *message) {
	q.remove(m)
	c.journal.append(line{Deleted: m.ID})
}

func (c change) set(q *queue, m *message, to messageState) {
	q.set(m, to, c.now)
	c.journal.append(line{State: &stateLine{m.ID, to}})
}

// move takes a message to another queue, where it is ready at once.
func (c change) move(from, to *queue, m *message, became message) {
	from.remove(m)
	became.Arrived, became.State.Visible = became.State.Count, 0
	to.add(&became, c.now)
	l := line{Message: &became}
	if became.ID != m.ID {
		l.Deleted = m.ID
	}
	c.journal.append(l)
}

// byARN returns the queue of an ARN, nil when there is none.
func (c change) byARN(arn string) *queue {
	name, ours := strings.CutPrefix(arn, arnPrefix)
	if !ours {
		return nil
	}
	return c.queues[name]
}

// sleep reports whether the time passed or something woke it: not when the client has gone away or the server closes.
func (s *Server) sleep(ctx context.Context, pause time.Duration, wakeup <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wakeup:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	case <-s.stop:
		return false
	}
}

// Release makes every message visible that a consumer of the queue has received and not deleted, whatever timeout it
// has left, and returns how many. It is for the start of a consumer when all earlier ones are known to be dead: SQS
// itself has no such call and lets the timeouts run out.
func (s *Server) Release(queueURL string) (released int, err error) {
	err = s.onQueue(&queueURL, func(c change, q *queue) error {
		for _, m := range q.inPhase(phaseInFlight) {
			to := m.State
			to.Visible = c.now
			c.set(q, m, to)
			released++
		}
		return nil
	})
	return released, err
}
