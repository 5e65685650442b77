package sdkhttp_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/commerce-integration/service/pkg/base/sdkhttp"
)

// A server counts its connections, and what its clients write.
type server struct {
	*httptest.Server
	conns, writes atomic.Int32
}

type counted struct {
	*net.TCPConn
	writes *atomic.Int32
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(b)
}

func serve(t testing.TB, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{Server: httptest.NewServer(handle)}
	t.Cleanup(s.Close)
	return s
}

// settings are a transport's that count what goes to the server.
func (s *server) settings() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		s.conns.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return counted{conn.(*net.TCPConn), &s.writes}, nil
	}}
}

// echo answers with the request's body, of unknown length if the path is /chunked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/chunked" {
		w.(http.Flusher).Flush()
	}
	_, _ = w.Write(body)
}

func post(ctx context.Context, client *sdkhttp.Client, to string, body io.Reader) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, io.NopCloser(body)) // no GetBody, as the SDK's have none
	if err != nil {
		return "", err
	}
	if sized, ok := body.(interface{ Len() int }); ok {
		r.ContentLength = int64(sized.Len())
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	got, err := io.ReadAll(answer.Body)
	return string(got), errors.Join(err, answer.Body.Close())
}

func TestRequestsShareAConnectionAndAreOneWriteEach(t *testing.T) {
	s := serve(t, echo)
	client := sdkhttp.New(s.settings())
	for _, body := range []string{`{"QueueUrl":"q"}`, "", strings.Repeat("x", 15<<10)} {
		if got, err := post(t.Context(), client, s.URL, strings.NewReader(body)); got != body || err != nil {
			t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(body))
		}
	}
	if conns, writes := s.conns.Load(), s.writes.Load(); conns != 1 || writes != 3 {
		t.Errorf("3 requests took %d connections and %d writes, want 1 and 3", conns, writes)
	}
}

func TestBodiesOfAnySize(t *testing.T) {
	s := serve(t, echo)
	client := sdkhttp.New(s.settings())
	for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, 1 << 20} {
		for _, path := range []string{"/", "/chunked"} {
			body := strings.Repeat("x", size)
			if got, err := post(t.Context(), client, s.URL+path, strings.NewReader(body)); got != body || err != nil {
				t.Errorf("%s: got %d bytes, %v, want %d", path, len(got), err, size)
			}
		}
	}
	if s.conns.Load() != 1 {
		t.Errorf("the requests took %d connections, want 1", s.conns.Load())
	}
}

func TestAConnectionThatTheServerClosedCostsNoError(t *testing.T) {
	s := serve(t, echo)
	client := sdkhttp.New(s.settings())
	for i := range 3 {
		body := fmt.Sprint(i)
		if got, err := post(t.Context(), client, s.URL, strings.NewReader(body)); got != body || err != nil {
			t.Fatalf("got %q, %v, want %q", got, err, body)
		}
		s.CloseClientConnections()
	}
	if s.conns.Load() != 3 {
		t.Errorf("it took %d connections, want 3", s.conns.Load())
	}
}

func TestWhatComesUnaskedIsNoAnswer(t *testing.T) {
	for name, unasked := range map[string]string{
		"a refusal of the idle connection": "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
		"the answer once more":             "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
	} {
		came := make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/first" {
				echo(w, r)
				return
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
			<-came
			_, _ = io.WriteString(conn, unasked)
			came <- struct{}{}
		})
		client := sdkhttp.New(s.settings())
		if got, err := post(t.Context(), client, s.URL+"/first", strings.NewReader("")); got != "first" || err != nil {
			t.Fatalf("%s: got %q, %v", name, got, err)
		}
		came <- struct{}{}
		<-came
		if got, err := post(t.Context(), client, s.URL, strings.NewReader("second")); got != "second" || err != nil {
			t.Errorf("%s: got %q, %v; want second", name, got, err)
		}
	}
}

// hangUp closes a request's connection.
func hangUp(t *testing.T, w http.ResponseWriter, first string) {
	t.Helper()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, err = io.WriteString(conn, first)
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func TestAnAnswerThatBreaksOffIsAnError(t *testing.T) {
	for name, first := range map[string]string{
		"before it":      "",
		"in its headers": "HTTP/1.1 200 OK\r\nContent-",
		"in its body":    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
		"no HTTP":        "hello\r\n\r\n",
		"an interim one": "HTTP/1.1 103 Early Hints\r\n\r\n",
		"a huge one":     "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					hangUp(t, w, first)
				}
			})
			client := sdkhttp.New(s.settings())
			if _, err := post(t.Context(), client, s.URL, strings.NewReader("1")); err != nil {
				t.Fatal(err)
			}
			got, err := post(t.Context(), client, s.URL, strings.NewReader("2"))
			if err == nil {
				t.Errorf("got %q, want an error", got)
			}
			if asked.Load() != 2 {
				t.Errorf("the server was asked %d times, want 2: the SDK must know what is repeated", asked.Load())
			}
		})
	}
}

func TestTheEndOfTheContextBreaksARequestOff(t *testing.T) {
	begun, free := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			close(begun)
			<-free
			return
		}
		if body, _ := io.ReadAll(r.Body); string(body) == "late" {
			t.Error("a request was sent after its context's end")
		} else {
			_, _ = w.Write(body)
		}
	})
	defer close(free)
	settings := s.settings()
	settings.ResponseHeaderTimeout = time.Hour
	client := sdkhttp.New(settings)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := post(ctx, client, s.URL+"/hang", strings.NewReader("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	for range 20 {
		if _, err := post(ctx, client, s.URL, strings.NewReader("late")); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: got %v, want %v", err, context.Canceled)
		}
	}
	if got, err := post(t.Context(), client, s.URL, strings.NewReader("3")); got != "3" || err != nil {
		t.Errorf("the next request: got %q, %v; want 3", got, err)
	}
}

func TestAnAnswerHasALimitOfTime(t *testing.T) {
	free := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-free
		}
	})
	defer close(free)
	settings := s.settings()
	settings.ResponseHeaderTimeout = 2 * time.Second
	client := sdkhttp.New(settings)
	if _, err := post(t.Context(), client, s.URL, strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := post(t.Context(), client, s.URL+"/hang", strings.NewReader("2")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if s.conns.Load() != 1 {
		t.Errorf("it took %d connections, want 1: the request may not be repeated", s.conns.Load())
	}
}

func TestTheLimitOfAnAnswerDoesNotLimitItsConnection(t *testing.T) {
	s := serve(t, echo)
	settings := s.settings()
	settings.ResponseHeaderTimeout = 2 * time.Second
	client := sdkhttp.New(settings)
	for i := range 2 {
		if i > 0 {
			time.Sleep(settings.ResponseHeaderTimeout + 10*time.Millisecond)
		}
		if got, err := post(t.Context(), client, s.URL, strings.NewReader("1")); got != "1" || err != nil {
			t.Fatalf("got %q, %v; want 1", got, err)
		}
	}
	if s.conns.Load() != 1 {
		t.Errorf("it took %d connections, want 1", s.conns.Load())
	}
}

func TestIdleConnectionsAreLimited(t *testing.T) {
	var together sync.WaitGroup
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			together.Done()
			together.Wait()
		}
		echo(w, r)
	})
	for name, of := range map[string]struct {
		perHost int
		timeout time.Duration
		want    int32 // connections of four requests, after four at once
	}{
		"all are kept": {4, 0, 4},
		"two are kept": {0, 0, 4 + 2},
		"none is kept": {4, 1, 4 + 4},
	} {
		s.conns.Store(0)
		settings := s.settings()
		settings.MaxIdleConnsPerHost, settings.IdleConnTimeout = of.perHost, of.timeout
		client := sdkhttp.New(settings)
		for range 2 {
			together.Add(4)
			var requests sync.WaitGroup
			for range 4 {
				requests.Go(func() {
					if got, err := post(t.Context(), client, s.URL+"/together", strings.NewReader("1")); got != "1" || err != nil {
						t.Errorf("%s: got %q, %v; want 1", name, got, err)
					}
				})
			}
			requests.Wait()
		}
		if s.conns.Load() != of.want {
			t.Errorf("%s: it took %d connections, want %d", name, s.conns.Load(), of.want)
		}
	}
}

func TestTLSAuthenticatesTheServer(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.EnableHTTP2 = true // which is not spoken, though a transport's settings may offer it
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	settings := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		t.TLSClientConfig.NextProtos = []string{"h2", "http/1.1"}
	}).GetTransport()
	for range 2 {
		if got, err := post(t.Context(), sdkhttp.New(settings), s.URL, strings.NewReader("1")); got != "1" || err != nil {
			t.Errorf("got %q, %v; want 1", got, err)
		}
	}
	var unknown x509.UnknownAuthorityError
	if _, err := post(t.Context(), sdkhttp.New(&http.Transport{}), s.URL, strings.NewReader("1")); !errors.As(err, &unknown) {
		t.Errorf("without the server's authority: got %v, want %T", err, unknown)
	}
}

func TestAProxyGetsTheRequest(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, r.RequestURI) })
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := sdkhttp.New(&http.Transport{Proxy: http.ProxyURL(at)})
	if got, err := post(t.Context(), client, "http://table.invalid/", strings.NewReader("1")); got != "http://table.invalid/" || err != nil {
		t.Errorf("the proxy was asked for %q, %v", got, err)
	}
}

func TestABodyThatCannotBeReadIsNotSent(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	if _, err := post(t.Context(), sdkhttp.New(s.settings()), s.URL, iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestAnotherSchemeIsNotSpoken(t *testing.T) {
	for _, to := range []string{"localhost:8000", "ftp://localhost/", "http:///table"} {
		if _, err := post(t.Context(), sdkhttp.New(&http.Transport{}), to, strings.NewReader("1")); err == nil || !strings.Contains(err.Error(), "not an HTTP address") {
			t.Errorf("%s: got %v", to, err)
		}
	}
}

func TestNobodyThereIsAnError(t *testing.T) {
	s := serve(t, echo)
	s.Close()
	if _, err := post(t.Context(), sdkhttp.New(&http.Transport{}), s.URL, strings.NewReader("1")); err == nil {
		t.Error("a request without a server succeeded")
	}
}
