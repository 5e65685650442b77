package outbound_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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

func TestCertificatesAreChecked(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		name    string
		host    string
		trusted bool
		version uint16
		later   time.Duration // by the client's clock
		want    string        // "": it is delivered
	}{
		{"good", "127.0.0.1", true, tls.VersionTLS13, 0, ""},
		{"expired", "127.0.0.1", true, tls.VersionTLS13, 48 * time.Hour, "TLS certificate expired on " + now.Add(time.Hour).UTC().Format(time.DateOnly)},
		{"not yet valid", "127.0.0.1", true, tls.VersionTLS13, -48 * time.Hour, "TLS certificate is not valid before " + now.Add(-time.Hour).UTC().Format(time.DateOnly)},
		{"another host", "10.0.0.1", true, tls.VersionTLS13, 0, "TLS certificate is not for 127.0.0.1"},
		{"unknown authority", "127.0.0.1", false, tls.VersionTLS13, 0, "TLS certificate is self-signed"},
		{"old protocol", "127.0.0.1", true, tls.VersionTLS11, 0, "the receiver refused the TLS handshake: protocol version not supported"},
	} {
		t.Run(row.name, func(t *testing.T) {
			cert, pool := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), row.host)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(ok))
			srv.Config.ErrorLog = quiet()
			srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: row.version}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			if !row.trusted {
				pool = x509.NewCertPool()
			}
			c := outbound.New(outbound.Config{AllowPrivateTargets: true, RootCAs: pool, Clock: func() time.Time { return now.Add(row.later) }})
			if out := post(t, c, srv.URL, 2*time.Second); (out.Kind == outbound.Answered) != (row.want == "") || out.Reason != row.want {
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
