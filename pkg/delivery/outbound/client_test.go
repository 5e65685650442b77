package outbound_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
)

func local() *outbound.Client { return outbound.New(outbound.Config{AllowPrivateTargets: true}) }

func post(t *testing.T, c *outbound.Client, url string, timeout time.Duration) outbound.Outcome {
	t.Helper()
	out := c.Post(t.Context(), url, http.Header{"Content-Type": {"application/json"}}, []byte(`{"a":1}`), timeout)
	checkWords(t, &out)
	return out
}

// checkWords fails for a reason that no receiver's owner could read: one that
// is missing, or that speaks in the words of an error within.
func checkWords(t *testing.T, out *outbound.Outcome) {
	t.Helper()
	if (out.Reason == "") != (out.Kind == outbound.Answered) || (out.Err == nil) != (out.Kind == outbound.Answered) {
		t.Errorf("kind %d with reason %q and error %v", out.Kind, out.Reason, out.Err)
	}
	for _, internal := range []string{"net/http", "http:", "tls:", "x509", "tcp", "udp", "dial", "lookup", "context", "syscall", "i/o", "0x", "EOF", "%!"} {
		if strings.Contains(out.Reason, internal) {
			t.Errorf("reason %q speaks of %q", out.Reason, internal)
		}
	}
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet()
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPostCarriesHeadersAndBodyAndReadsTheAnswer(t *testing.T) {
	var got *http.Request
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "busy")
	})
	c := local()
	for range 2 {
		out := post(t, c, url+"/hook?x=1", time.Second)
		if out.Kind != outbound.Answered || out.Status != 503 || string(out.Body) != "busy" || out.RetryAfter != 7*time.Second {
			t.Fatalf("outcome %+v", out)
		}
		if got.Method != http.MethodPost || got.URL.RequestURI() != "/hook?x=1" || string(body) != `{"a":1}` || got.ContentLength != 7 {
			t.Errorf("request %s %s %q", got.Method, got.URL, body)
		}
		for _, name := range []string{"Cookie", "Idempotency-Key", "Accept-Encoding", "Referer"} {
			if v, sent := got.Header[name]; sent {
				t.Errorf("request has %s: %q", name, v)
			}
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Bool
	target := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for i, status := range []int{301, 302, 303, 307, 308} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, status) })
			if out := post(t, local(), url, time.Second); out.Kind != outbound.Answered || out.Status != status {
				t.Errorf("%d: outcome %+v", status, out)
			}
		})
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

// net/http reads the environment once in a process, so that the test has one
// of its own.
func TestProxyOfTheEnvironmentIsIgnored(t *testing.T) {
	if os.Getenv("HTTPS_PROXY") == "" {
		test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
		test.Env = append(os.Environ(), "HTTP_PROXY=http://proxy.test:80", "HTTPS_PROXY=http://proxy.test:80", "NO_PROXY=")
		if output, err := test.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	n := newNetwork(t)
	n.host(t, "93.184.216.34", ok, "direct.test")
	n.name("direct.test", "93.184.216.34")
	n.name("proxy.test", "93.184.216.35")
	if out := post(t, n.client(), "https://direct.test/", 5*time.Second); out.Status != 200 {
		t.Errorf("outcome %+v", out)
	}
	if got := n.reached(); !slices.Equal(got, []string{"93.184.216.34"}) {
		t.Errorf("dialled %s", got)
	}
}

func TestForbiddenTargetsAreRefusedWithoutARequest(t *testing.T) {
	var asked atomic.Bool
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(srv.Close)
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	c := outbound.New(outbound.Config{})
	for _, url := range []string{
		fmt.Sprintf("https://127.0.0.1:%d/", port),
		fmt.Sprintf("https://localhost:%d/", port),
		fmt.Sprintf("https://[::ffff:127.0.0.1]:%d/", port),
		fmt.Sprintf("https://[::1]:%d/", port),
		fmt.Sprintf("https://0.0.0.0:%d/", port),
		"https://169.254.169.254/latest/meta-data/",
		"https://[fd00:ec2::254]/latest/meta-data/",
		fmt.Sprintf("http://127.0.0.1:%d/", port),
		fmt.Sprintf("https://user:secret@127.0.0.1:%d/", port),
		"ftp://127.0.0.1/",
		"https:///path",
		"::",
	} {
		out := post(t, c, url, 2*time.Second)
		if out.Kind != outbound.Forbidden || out.Reason == "" {
			t.Errorf("%s: outcome %+v", url, out)
		}
	}
	if asked.Load() {
		t.Error("a forbidden target was asked")
	}
}

func TestSlowReceiversEndAtTheDeadline(t *testing.T) {
	release := make(chan struct{})
	headers := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	body := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "start")
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	t.Cleanup(func() { close(release) }) // before the servers close
	tls := silentListener(t)
	for _, row := range []struct {
		name, url, reason, body string
		kind                    outbound.Kind
	}{
		{"headers never come", headers, "timed out after 0.2 s waiting for headers", "", outbound.Failed},
		{"body never ends", body, "", "start", outbound.Answered},
		{"handshake never comes", "https://" + tls, "timed out after 0.2 s waiting for the TLS handshake", "", outbound.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := post(t, local(), row.url, 200*time.Millisecond)
			if out.Kind != row.kind || out.Reason != row.reason || string(out.Body) != row.body {
				t.Errorf("outcome %+v, want reason %q", out, row.reason)
			}
			if out.Took < 200*time.Millisecond || out.Took > 2*time.Second {
				t.Errorf("took %s", out.Took)
			}
		})
	}
}

// silentListener accepts connections and says nothing.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestAnswersAreReadWithinBounds(t *testing.T) {
	endless := serve(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 32<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	out := post(t, local(), endless, 5*time.Second)
	if out.Kind != outbound.Answered || len(out.Body) != 64<<10 || out.Took > 2*time.Second {
		t.Errorf("endless body: kind %d, %d bytes, %s", out.Kind, len(out.Body), out.Took)
	}
	huge := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Huge", strings.Repeat("x", 200<<10))
	})
	if out := post(t, local(), huge, 5*time.Second); out.Kind != outbound.Failed || out.Reason != "the response headers exceed 64 KiB" {
		t.Errorf("huge header: outcome %+v", out)
	}
}

// raw answers every connection with the text and closes it.
func raw(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestFailuresAreToldInWords(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, row := range []struct{ name, url, want string }{
		{"nobody listens", "http://" + closed.Addr().String(), "connection refused"},
		{"no answer", "http://" + raw(t, ""), "connection closed by the receiver before it answered"},
		{"not HTTP", "http://" + raw(t, "220 mail ESMTP\r\n"), "the receiver did not answer in valid HTTP"},
		{"not TLS", "https://" + raw(t, "HTTP/1.0 400 Bad Request\r\n\r\n"), "the receiver does not speak TLS on this port"},
		{"no such name", "http://does-not-exist.invalid", "the name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := post(t, local(), row.url, 2*time.Second)
			if out.Kind != outbound.Failed || !strings.HasPrefix(out.Reason, row.want) {
				t.Errorf("outcome %+v, want %q", out, row.want)
			}
		})
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		name          string
		from, to      time.Time
		host          string
		trusted       bool
		version       uint16
		want          string
		wantDelivered bool
	}{
		{"good", now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1", true, tls.VersionTLS13, "", true},
		{
			"expired", now.Add(-48 * time.Hour), now.Add(-24 * time.Hour), "127.0.0.1", true, tls.VersionTLS13,
			"TLS certificate expired on " + now.Add(-24*time.Hour).UTC().Format(time.DateOnly), false,
		},
		{
			"not yet valid", now.Add(24 * time.Hour), now.Add(48 * time.Hour), "127.0.0.1", true, tls.VersionTLS13,
			"TLS certificate is not valid before " + now.Add(24*time.Hour).UTC().Format(time.DateOnly), false,
		},
		{"another host", now.Add(-time.Hour), now.Add(time.Hour), "10.0.0.1", true, tls.VersionTLS13, "TLS certificate is not for 127.0.0.1", false},
		{"unknown authority", now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1", false, tls.VersionTLS13, "TLS certificate is self-signed", false},
		{"old protocol", now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1", true, tls.VersionTLS11, "the receiver refused the TLS handshake: it does not offer TLS 1.2 or later", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			cert, pool := certificate(t, row.from, row.to, row.host)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			srv.Config.ErrorLog = quiet()
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: row.version}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			cfg := outbound.Config{AllowPrivateTargets: true}
			if row.trusted {
				cfg.RootCAs = pool
			} else {
				cfg.RootCAs = x509.NewCertPool()
			}
			out := post(t, outbound.New(cfg), srv.URL, 2*time.Second)
			if (out.Kind == outbound.Answered) != row.wantDelivered || out.Reason != row.want {
				t.Errorf("outcome %+v, want %q", out, row.want)
			}
		})
	}
}

func certificate(t testing.TB, from, to time.Time, hosts ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}, pool
}

func TestCertificatesAreCheckedByTheClientsClock(t *testing.T) {
	now := time.Now()
	cert, pool := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), "127.0.0.1")
	srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	srv.Config.ErrorLog = quiet()
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for offset, want := range map[time.Duration]string{
		0:               "",
		48 * time.Hour:  "TLS certificate expired on " + now.Add(time.Hour).UTC().Format(time.DateOnly),
		-48 * time.Hour: "TLS certificate is not valid before " + now.Add(-time.Hour).UTC().Format(time.DateOnly),
	} {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			c := outbound.New(outbound.Config{AllowPrivateTargets: true, RootCAs: pool, Clock: func() time.Time { return now.Add(offset) }})
			if out := post(t, c, srv.URL, 5*time.Second); out.Reason != want {
				t.Errorf("%s from now: outcome %+v, want %q", offset, out, want)
			}
		})
	}
}

// A kept connection that the receiver has closed meanwhile, as after a
// function was frozen, is no failed attempt.
func TestClosedKeptConnectionIsReplaced(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buffer := make([]byte, 4096)
				_, _ = conn.Read(buffer)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				// The next request is read and then the connection breaks.
				_, _ = conn.Read(buffer)
				conn.Close()
			}()
		}
	}()
	c := local()
	for i := range 4 {
		if out := post(t, c, "http://"+l.Addr().String(), 2*time.Second); out.Kind != outbound.Answered {
			t.Errorf("request %d: outcome %+v", i, out)
		}
	}
}

func TestEndOfTheCallersTimeIsNotTheReceiversFailure(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if out := local().Post(ctx, url, nil, nil, 5*time.Second); out.Kind != outbound.Ours {
		t.Errorf("outcome %+v, want ours", out)
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	began := time.Now()
	for header, want := range map[string]time.Duration{
		"":    0,
		"0":   0,
		"120": 2 * time.Minute,
		"-5":  0,
		"1.5": 0,
		began.Add(time.Hour).UTC().Format(http.TimeFormat):  time.Hour,
		began.Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		t.Run(header, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			out := post(t, local(), url, time.Second)
			if d := (out.RetryAfter - want).Abs(); d > time.Since(began)+time.Second {
				t.Errorf("Retry-After %q: %s, want %s", header, out.RetryAfter, want)
			}
		})
	}
}
