package tableserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// startTimeout is how long a server may take until it answers. Java needs seconds, on a busy machine many.
const startTimeout = 30 * time.Second

// emptyFile is a database of dynoxide without any table of ours. empty.sql says what it holds beyond what the server
// would make itself.
//
//go:generate sh -c "rm -f empty.db && sqlite3 empty.db <empty.sql"
//go:embed empty.db
var emptyFile []byte

// A Server is a running table server. Its methods may be called concurrently.
type Server struct {
	endpoint string
	child    *process
	control  *dynamodb.Client // puts items into the control table; nil when there is none

	closing sync.Once
	closed  error
}

// Start runs the program on a free port of 127.0.0.1 with its tables in dataDir and returns when it answers. The caller
// sees to it that only one server uses a directory; each kind of server has a file of its own there. A damaged file is
// an error that names it; the server recovers a file that a killed server left. The child stays in the caller's process
// group; on Linux it dies with the caller and ignores the interrupts of a terminal, so that the tables answer until
// Close.
func Start(ctx context.Context, program Program, dataDir string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory of the tables: %w", err)
	}
	s := &Server{}
	var err error
	if program.kind == DynamoDBLocal {
		err = s.launch(ctx, func(port string) (string, []string) { return dynamoDBLocal(program.path, dataDir, port) })
	} else {
		err = s.startDynoxide(ctx, program.path, filepath.Join(dataDir, "tables.db"))
	}
	if err != nil {
		if s.child != nil {
			err = errors.Join(err, s.child.stop())
		}
		return nil, fmt.Errorf("starting the table server in %s: %w", dataDir, err)
	}
	return s, nil
}

// startDynoxide starts dynoxide on its file, which it makes when there is none.
func (s *Server) startDynoxide(ctx context.Context, binary, file string) error {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		fresh := file + ".new"
		if err := errors.Join(os.WriteFile(fresh, emptyFile, 0o600), os.Rename(fresh, file)); err != nil {
			return fmt.Errorf("making the table file: %w", err)
		}
		info, err = os.Stat(file)
	}
	if err != nil {
		return err
	}
	err = s.launch(ctx, func(port string) (string, []string) {
		return binary, []string{"serve", "--host", "127.0.0.1", "--port", port, "--db-path", file}
	})
	if err == nil {
		err = s.openControl(ctx, info.Size())
	}
	// The first two are SQLite's own words, as dynoxide reports them.
	for _, damage := range []string{"is malformed", "not a valid SQLite database", controlDamaged} {
		if err != nil && strings.Contains(err.Error(), damage) {
			return fmt.Errorf("the table file %s is damaged: move it and its -wal and -shm files away, and the next start makes a new one: %w", file, err)
		}
	}
	return err
}

// dynamoDBLocal returns the command for DynamoDB Local from its folder of archives. Java compiles only as far as a
// short run needs.
func dynamoDBLocal(archives, dataDir, port string) (java string, args []string) {
	java = "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", java)
	}
	return java, []string{
		"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dsqlite4java.library.path=" + archives, "-cp", filepath.Join(archives, "*"),
		"com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-dbPath", dataDir, "-sharedDb", "-disableTelemetry", "-port", port,
	}
}

// launch starts the server on a free port and waits until it answers. When another process took the port between the
// choice and the start, launch chooses another.
func (s *Server) launch(ctx context.Context, command func(port string) (string, []string)) error {
	for try := 0; ; try++ {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		_, port, _ := strings.Cut(address, ":")
		name, args := command(port)
		s.endpoint = "http://" + address
		if s.child, err = startProcess(name, args...); err != nil {
			return err
		}
		err = s.awaitAnswer(ctx)
		if err == nil || try == 4 || !strings.Contains(err.Error(), "already in use") {
			return err
		}
		if err := s.child.stop(); err != nil {
			return err
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

func (s *Server) awaitAnswer(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}
	every := time.NewTicker(3 * time.Millisecond)
	defer every.Stop()
	for {
		if answers(ctx, client, s.endpoint) {
			return nil
		}
		select {
		case <-s.child.ended:
			return s.child.failure()
		case <-ctx.Done():
			return fmt.Errorf("no answer from the table server at %s: %w", s.endpoint, ctx.Err())
		case <-every.C:
		}
	}
}

// answers reports whether a table server answers, and not another program that took the port: dynoxide says its
// version, DynamoDB Local gives every request an ID.
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
	return err == nil && (response.Header.Get("X-Dynoxide-Version") != "" || response.Header.Get("X-Amzn-Requestid") != "")
}

// client returns a client that tries each request once: a failed check of the file must not look like a failure of the network.
func (s *Server) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &s.endpoint, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

// Endpoint returns the server's URL, for the SDK's BaseEndpoint of DynamoDB and of DynamoDB Streams.
func (s *Server) Endpoint() string { return s.endpoint }

// Done is closed when the server process is gone, whether it was closed or died.
func (s *Server) Done() <-chan struct{} { return s.child.ended }

// Err says how the server process ended, with the end of its output. It is nil while the process runs.
func (s *Server) Err() error {
	select {
	case <-s.child.ended:
		return s.child.failure()
	default:
		return nil
	}
}

// Close ends the server, within some seconds even if it hangs, and returns when it is gone. A second call does nothing.
func (s *Server) Close() error {
	s.closing.Do(func() { s.closed = s.child.stop() })
	return s.closed
}
