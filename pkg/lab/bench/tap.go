package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// tap stands between a service and its table: it passes requests on, asks the
// table what each consumes, and keeps those that read or write items.
type tap struct {
	target    string
	transport *http.Transport
	server    *http.Server
	url       string

	mu      sync.Mutex
	calls   []*tapped
	streams int // requests of the table's stream, which are not kept
	err     error
}

// tapped is a request that went through.
type tapped struct {
	operation string
	body      []byte
	refused   bool    // answered by an error
	units     float64 // that the table told
}

// newTap serves on a free port of loopback, in front of a table server, until
// close.
func newTap(ctx context.Context, target string) (*tap, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen before the table: %w", err)
	}
	t := &tap{target: target, transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}, url: "http://" + listener.Addr().String()}
	t.server = &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = t.server.Serve(listener) }() // until close
	return t, nil
}

// close ends all requests and tells what went wrong with one of them.
func (t *tap) close() error {
	err := t.server.Close()
	t.transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.err)
}

// clear forgets what went through, and returns it.
func (t *tap) clear() []*tapped {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.calls
	t.calls, t.streams = nil, 0
	return calls
}

// ServeHTTP passes a request on.
func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := t.pass(w, r); err != nil {
		t.mu.Lock()
		if t.err == nil && r.Context().Err() == nil {
			t.err = err
		}
		t.mu.Unlock()
		panic(http.ErrAbortHandler) // as the table's own connection would end
	}
}

func (t *tap) pass(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read a request to the table: %w", err)
	}
	service, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	call := t.note(service, operation, body)
	if call != nil {
		body = asking(body)
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, t.target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("pass a request on to the table: %w", err)
	}
	out.Header = r.Header.Clone()
	got, err := t.transport.RoundTrip(out)
	if err != nil {
		return fmt.Errorf("pass a request on to the table: %w", err)
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	if err != nil {
		return fmt.Errorf("read an answer of the table: %w", err)
	}
	if call != nil {
		if err := t.consume(call, got.StatusCode, answer); err != nil {
			return err
		}
	}
	for name, values := range got.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(got.StatusCode)
	_, _ = w.Write(answer) // a client that went away is no error
	return nil
}

// note keeps a request in the order of arrival; nil is one that is not kept.
func (t *tap) note(service, operation string, body []byte) *tapped {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.HasPrefix(service, "DynamoDBStreams") {
		t.streams++
		return nil
	}
	if !tells(operation) {
		return nil
	}
	call := &tapped{operation: operation, body: body}
	t.calls = append(t.calls, call)
	return call
}

// tells reports whether an operation tells what it consumes, when asked.
func tells(operation string) bool { return reads(operation) || writes(operation) }

// reads leaves out Scan, by which the local runner does what DynamoDB does by
// itself: it removes what has expired.
func reads(operation string) bool {
	switch operation {
	case "GetItem", "BatchGetItem", "TransactGetItems", "Query":
		return true
	}
	return false
}

// writes takes statements for writes: the service reads by none.
func writes(operation string) bool {
	switch operation {
	case "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems", "BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction":
		return true
	}
	return false
}

// asking adds to a request that it wants to know what it consumes.
func asking(body []byte) []byte {
	const wanted = `{"ReturnConsumedCapacity":"TOTAL"`
	rest := bytes.TrimLeft(bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{")), " \n")
	if bytes.HasPrefix(rest, []byte("}")) {
		return append([]byte(wanted), rest...)
	}
	return append([]byte(wanted+","), rest...)
}

// consume notes what the table says of a request.
func (t *tap) consume(call *tapped, status int, answer []byte) error {
	type consumed struct{ CapacityUnits float64 }
	var told struct{ ConsumedCapacity jsontext.Value }
	units, refused := 0.0, status != http.StatusOK
	if !refused {
		if err := json.Unmarshal(answer, &told); err != nil {
			return fmt.Errorf("read what %s consumed: %w", call.operation, err)
		}
		several := make([]consumed, 1)
		var err error
		switch told.ConsumedCapacity.Kind() {
		case '{':
			err = json.Unmarshal(told.ConsumedCapacity, &several[0])
		case '[':
			err = json.Unmarshal(told.ConsumedCapacity, &several)
		}
		if err != nil {
			return fmt.Errorf("read what %s consumed: %w", call.operation, err)
		}
		for _, one := range several {
			units += one.CapacityUnits
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	call.units, call.refused = units, refused
	return nil
}
