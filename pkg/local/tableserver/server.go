package tableserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrInUse says that another process keeps its tables in the directory.
var ErrInUse = errors.New("the data directory is in use by another run")

// Config holds what Start may be told. Its zero value is usable.
type Config struct {
	StartTimeout time.Duration // how long the server may take until it answers, default 10 s
}

// A Server is a running table server. Its methods may be called concurrently.
type Server struct {
	endpoint string
	child    *process
	db       *sql.DB
	lock     *os.File

	closing sync.Once
	closed  error
}

// Start runs binary on a free port of 127.0.0.1 with its tables in dataDir and returns when it answers. Only one server
// may use a directory at a time (ErrInUse). A damaged file is an error that names it; a file that a killed server left
// is recovered. The child stays in the caller's process group; on Linux it dies with the caller and leaves the interrupts
// of a terminal to it, so that the tables answer until Close.
func Start(ctx context.Context, binary, dataDir string, cfg *Config) (*Server, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	patience := cfg.StartTimeout
	if patience <= 0 {
		patience = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory of the tables: %w", err)
	}
	lock, err := lockDirectory(dataDir)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, binary, filepath.Join(dataDir, "tables.db"))
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

// open prepares the file and starts the server on it. Only the server makes its tables, so a new file needs a first,
// short run before the indexes can be added.
func open(ctx context.Context, binary, path string) (*Server, error) {
	ready, err := prepareFile(ctx, path)
	if err != nil {
		return nil, err
	}
	if !ready {
		first, _, err := launch(ctx, binary, path)
		if err != nil {
			return nil, err
		}
		if err := first.stop(); err != nil {
			return nil, err
		}
		if ready, err = prepareFile(ctx, path); err != nil {
			return nil, err
		}
		if !ready {
			return nil, fmt.Errorf("the table server made no table of stream records in %s: is %s really dynoxide %s?", path, binary, Version)
		}
	}
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	running, endpoint, err := launch(ctx, binary, path)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Server{endpoint: endpoint, child: running, db: db}, nil
}

// launch starts the server and waits until it answers. A port that somebody else took between the choice and the start
// is replaced by another.
func launch(ctx context.Context, binary, path string) (*process, string, error) {
	for try := 0; ; try++ {
		address, err := freeAddress()
		if err != nil {
			return nil, "", err
		}
		_, port, _ := strings.Cut(address, ":")
		running, err := startProcess(binary, "serve", "--host", "127.0.0.1", "--port", port, "--db-path", path)
		if err != nil {
			return nil, "", err
		}
		err = awaitAnswer(ctx, running, "http://"+address)
		if err == nil {
			return running, "http://" + address, nil
		}
		err = errors.Join(err, running.stop())
		if try == 4 || !strings.Contains(err.Error(), "already in use") {
			return nil, "", fmt.Errorf("starting the table server on %s: %w", path, err)
		}
	}
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

func awaitAnswer(ctx context.Context, running *process, endpoint string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}
	every := time.NewTicker(3 * time.Millisecond)
	defer every.Stop()
	for {
		if answers(ctx, client, endpoint) {
			return nil
		}
		select {
		case <-running.ended:
			return running.failure()
		case <-ctx.Done():
			return fmt.Errorf("no answer from the table server at %s: %w", endpoint, ctx.Err())
		case <-every.C:
		}
	}
}

func answers(ctx context.Context, client *http.Client, endpoint string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK && response.Header.Get("X-Dynoxide-Version") != ""
}

// Endpoint returns the server's URL, for the SDK's BaseEndpoint of DynamoDB and of DynamoDB Streams.
func (s *Server) Endpoint() string { return s.endpoint }

// Done is closed when the server process is gone, whether it was closed or died.
func (s *Server) Done() <-chan struct{} { return s.child.ended }

// Err says how the server process ended, with its last words. It is nil while the process runs.
func (s *Server) Err() error {
	select {
	case <-s.child.ended:
		return s.child.failure()
	default:
		return nil
	}
}

// Trim deletes the records of a table's stream up to and including the sequence number that every consumer is past; the
// newest record stays whatever the number. It returns how many went. The server may run and write meanwhile.
func (s *Server) Trim(ctx context.Context, table, sequenceNumber string) (int64, error) {
	past, err := strconv.ParseInt(sequenceNumber, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("trimming the stream of %s: %w", table, err)
	}
	removed, err := trim(ctx, s.db, table, past)
	if err != nil {
		return removed, fmt.Errorf("trimming the stream of %s up to %d: %w", table, past, err)
	}
	return removed, nil
}

// Close ends the server, within some seconds even if it hangs, and returns when it is gone. The last to leave the file
// is this process, which so moves the write-ahead log into it. A second call does nothing.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.closed = errors.Join(s.child.stop(), s.db.Close(), s.lock.Close())
	})
	return s.closed
}
