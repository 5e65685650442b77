package outbound_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
)

func ok(http.ResponseWriter, *http.Request) {}

// The name is public when it is checked and private a moment later, at every
// second lookup; each connection is made with the addresses of one lookup.
func TestRebindingReachesNothingPrivate(t *testing.T) {
	n := newNetwork(t)
	n.host(t, "93.184.216.34", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }, "rebind.test")
	n.rebind("rebind.test", func(lookup int) []string {
		if lookup%2 == 1 {
			return []string{"93.184.216.34"}
		}
		return []string{"169.254.169.254"}
	})
	c := n.client()
	for attempt := 1; attempt <= 6; attempt++ {
		out := post(t, c, "https://rebind.test/", 5*time.Second)
		want, reached := outbound.Answered, []string{"93.184.216.34"}
		if attempt%2 == 0 {
			want, reached = outbound.Forbidden, nil
		}
		if got := n.reached(); out.Kind != want || !slices.Equal(got, reached) {
			t.Errorf("attempt %d: outcome %+v, dialled %s, want %s", attempt, out, got, reached)
		}
		if want == outbound.Forbidden && out.Reason != "the address is link-local" {
			t.Errorf("attempt %d: reason %q", attempt, out.Reason)
		}
	}
	if got := n.lookups["rebind.test."]; got != 6 {
		t.Errorf("%d lookups for 6 connections", got)
	}
}

func TestOnlyAllowedAddressesOfANameAreDialled(t *testing.T) {
	const works, refuses = "93.184.216.34", "93.184.216.99"
	for _, row := range []struct {
		name    string
		addrs   []string
		kind    outbound.Kind
		reason  string
		reached []string
	}{
		{"one of each", []string{"10.0.0.1", works}, outbound.Answered, "", []string{works}},
		{"public one first", []string{works, "127.0.0.1"}, outbound.Answered, "", []string{works}},
		{"families mixed", []string{"fd00::1", "::1", "192.168.1.1", works}, outbound.Answered, "", []string{works}},
		{"the allowed one is down", []string{"10.0.0.1", refuses}, outbound.Failed, "connection refused", []string{refuses}},
		{"first is down", []string{refuses, works}, outbound.Answered, "", nil},
		{"all private", []string{"10.0.0.1", "10.0.0.2"}, outbound.Forbidden, "the address is private", nil},
		{"translated", []string{"64:ff9b::a9fe:a9fe"}, outbound.Forbidden, "the address is link-local", nil},
		{"mapped", []string{"::ffff:127.0.0.1"}, outbound.Forbidden, "the address is loopback", nil},
		{"none", nil, outbound.Failed, "the name does not resolve", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := newNetwork(t)
			n.host(t, works, ok, "some.test")
			n.name("some.test", row.addrs...)
			out := post(t, n.client(), "https://some.test/", 5*time.Second)
			if out.Kind != row.kind || out.Reason != row.reason {
				t.Errorf("outcome %+v, want kind %d, %q", out, row.kind, row.reason)
			}
			reached := n.reached()
			if row.reached != nil && !slices.Equal(reached, row.reached) {
				t.Errorf("dialled %s, want %s", reached, row.reached)
			}
			if slices.ContainsFunc(reached, func(a string) bool { return a != works && a != refuses }) {
				t.Errorf("dialled %s", reached)
			}
		})
	}
}

// A name with hundreds of addresses must not make a scanner of us.
func TestFewAddressesOfANameAreDialled(t *testing.T) {
	n := newNetwork(t)
	var addrs []string
	for i := range 30 {
		addrs = append(addrs, fmt.Sprintf("93.184.216.%d", i), fmt.Sprintf("2606:4700::%d", i+1))
	}
	n.name("many.test", addrs...)
	if out := post(t, n.client(), "https://many.test/", 5*time.Second); out.Kind != outbound.Failed || out.Reason != "connection refused" {
		t.Errorf("outcome %+v", out)
	}
	if reached := n.reached(); len(reached) != 6 {
		t.Errorf("dialled %s, want six", reached)
	}
}

// An address that swallows everything leaves the others their share of the time.
func TestSilentAddressIsPassedOver(t *testing.T) {
	n := newNetwork(t)
	n.host(t, "93.184.216.34", ok, "half.test")
	n.name("half.test", "93.184.216.1", "93.184.216.34")
	c := outbound.New(n.cfg)
	c.Connect(func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
		if target.Addr().String() == "93.184.216.34" {
			return n.connect(ctx, target)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if out := post(t, c, "https://half.test/", 2*time.Second); out.Kind != outbound.Answered {
		t.Errorf("outcome %+v", out)
	}
}

// The Lambda runtime API, at port 9001, would hand out other tenants' events and
// take answers to them.
func TestForbiddenTargetsAreNotDialled(t *testing.T) {
	n := newNetwork(t)
	n.name("runtime.test", "127.0.0.1")
	n.name("public.test", "93.184.216.34")
	for _, row := range []struct {
		url     string
		private bool // are permitted
	}{
		{"https://127.0.0.1/", false},
		{"https://localhost/", false},
		{"https://[::ffff:127.0.0.1]/", false},
		{"https://[::1]/", false},
		{"https://0.0.0.0/", false},
		{"https://169.254.169.254/latest/meta-data/", false},
		{"https://[fd00:ec2::254]/latest/meta-data/", false},
		{"http://93.184.216.34/", false},
		{"https://user:secret@93.184.216.34/", false},
		{"ftp://93.184.216.34/", false},
		{"https:///path", false},
		{"::", false},
		{"https://127.0.0.1:9001/2018-06-01/runtime/invocation/next", false},
		{"https://[::ffff:7f00:1]:9001/", false},
		{"https://0.0.0.0:9001/", false},
		{"https://runtime.test:9001/", false},
		{"https://runtime.test/", false},
		{"https://public.test:9001/", false},
		{"http://127.0.0.1:9001/", true},
		{"http://localhost:9001/", true},
		{"https://127.0.0.1:09001/", true},
		{"http://127.0.0.1:0/", true},
		{"http://127.0.0.1:65536/", true},
		{"http://127.0.0.1:99999999999/", true},
	} {
		t.Run(row.url, func(t *testing.T) {
			n.cfg.AllowPrivateTargets = row.private
			if out := post(t, n.client(), row.url, 5*time.Second); out.Kind != outbound.Forbidden {
				t.Errorf("outcome %+v", out)
			}
			if got := n.reached(); len(got) != 0 {
				t.Errorf("dialled %s", got)
			}
		})
	}
}

// speak accepts connections and lets answer talk on each once a request's
// header has come. ended tells for each connection when the client let go.
func speak(t *testing.T, answer func(conn *net.TCPConn)) (address string, ended <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ends := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				answer(conn.(*net.TCPConn))
				_, _ = io.Copy(io.Discard, conn)
				ends <- struct{}{}
			}()
		}
	}()
	return l.Addr().String(), ends
}

// awaitEnd fails when a connection, or a dial, is not let go of.
func awaitEnd(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("it goes on")
	}
}

// drip writes the text over and over, a byte at a time, until nobody listens.
func drip(text string) func(*net.TCPConn) {
	return func(conn *net.TCPConn) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			if _, err := conn.Write([]byte{text[i%len(text)]}); err != nil {
				return
			}
			<-tick.C
		}
	}
}

func say(text string) func(*net.TCPConn) {
	return func(conn *net.TCPConn) { _, _ = io.WriteString(conn, text) }
}

func after(text string, then func(*net.TCPConn)) func(*net.TCPConn) {
	return func(conn *net.TCPConn) {
		say(text)(conn)
		then(conn)
	}
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}

func halfClose(conn *net.TCPConn) { _ = conn.CloseWrite() }

func endless(text string) func(*net.TCPConn) {
	return func(conn *net.TCPConn) {
		chunk := []byte(strings.Repeat(text, 8192/len(text)))
		for {
			if _, err := conn.Write(chunk); err != nil {
				return
			}
		}
	}
}

const okHeader = "HTTP/1.1 200 OK\r\n"

// Whatever a receiver does, the attempt ends in time, in words, and without
// a socket left behind.
func TestHostileAnswersEndInTimeAndInWords(t *testing.T) {
	const short, enough = 250 * time.Millisecond, 20 * time.Second // for what lasts until it; for what must end by itself
	late := func(phase string) string { return "timed out after 0.25 s " + phase }
	const invalid = "the receiver did not answer in valid HTTP"
	for _, row := range []struct {
		name   string
		answer func(*net.TCPConn)
		kind   outbound.Kind
		reason string
		body   string
	}{
		{"silence", say(""), outbound.Failed, late("waiting for headers"), ""},
		{"slow header", drip("H"), outbound.Failed, late("reading the headers"), ""},
		{"slow header lines", after(okHeader, drip("X-A: b\r\n")), outbound.Failed, late("reading the headers"), ""},
		{"slow body", after(okHeader+"Content-Length: 1000000\r\n\r\nstart", drip("x")), outbound.Answered, "", "start"},
		{"slow chunks", after(okHeader+"Transfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n", drip("1\r\nx\r\n")), outbound.Answered, "", "start"},
		{"slow trailer", after(okHeader+"Transfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n0\r\n", drip("X-A: b\r\n")), outbound.Answered, "", "start"},
		{"endless body", after(okHeader+"\r\n", endless("x")), outbound.Answered, "", strings.Repeat("x", 64<<10)},
		{"stalled body", say(okHeader + "Content-Length: 100\r\n\r\nstart"), outbound.Answered, "", "start"},
		{"endless status line", endless("H"), outbound.Failed, "the response headers exceed 64 KiB", ""},
		{"endless header", after(okHeader+"X-A: ", endless("a")), outbound.Failed, "the response headers exceed 64 KiB", ""},
		{"endless headers", after(okHeader, endless("X-A: b\r\n")), outbound.Failed, "the response headers exceed 64 KiB", ""},
		{"endless interim answers", endless("HTTP/1.1 103 Early Hints\r\n\r\n"), outbound.Failed, "the response headers exceed 64 KiB", ""},
		{"slow interim answers", drip("HTTP/1.1 100 Continue\r\n\r\n"), outbound.Failed, late("reading the headers"), ""},
		{"endless chunk extension", after(okHeader+"Transfer-Encoding: chunked\r\n\r\n1;", endless("a")), outbound.Answered, "", ""},
		{"reset", reset, outbound.Failed, "connection reset by the receiver", ""},
		{"reset in the headers", after(okHeader+"X-A: b\r\n", reset), outbound.Failed, "connection ", ""},
		{"reset in the body", after(okHeader+"Content-Length: 9\r\n\r\nstart", reset), outbound.Answered, "", ""},
		{"half-closed", halfClose, outbound.Failed, "connection closed by the receiver", ""},
		{"half-closed in the headers", after(okHeader, halfClose), outbound.Failed, "connection closed by the receiver within the headers", ""},
		{"half-closed in the body", after(okHeader+"Content-Length: 9\r\n\r\nstart", halfClose), outbound.Answered, "", "start"},
		{"half-closed at the end", after(okHeader+"\r\nstart", halfClose), outbound.Answered, "", "start"},
		{"upgrade", say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), outbound.Answered, "", ""},
		{"upgrade and data", after("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", endless("x")), outbound.Answered, "", ""},
		{"HTTP/2 frames", say("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\n"), outbound.Failed, invalid, ""},
		{"HTTP/2 status line", say("HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"), outbound.Answered, "", ""},
		{"no HTTP", say("220 mail.test ESMTP\r\n"), outbound.Failed, invalid, ""},
		{"no status", say("HTTP/1.1 \r\n\r\n"), outbound.Failed, invalid, ""},
		{"status of one digit", say("HTTP/1.1 2 OK\r\n\r\n"), outbound.Failed, invalid, ""},
		{"status below all classes", say("HTTP/1.1 001 OK\r\n\r\n"), outbound.Failed, invalid, ""},
		{"negative length", say(okHeader + "Content-Length: -1\r\n\r\n"), outbound.Failed, invalid, ""},
		{"two lengths", say(okHeader + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), outbound.Failed, invalid, ""},
		{"unknown encoding", say(okHeader + "Transfer-Encoding: gzip\r\n\r\n"), outbound.Failed, invalid, ""},
		{"a header without a colon", say(okHeader + "nothing\r\n\r\n"), outbound.Failed, invalid, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			address, ended := speak(t, row.answer)
			limit := short
			if strings.HasSuffix(row.reason, "exceed 64 KiB") {
				limit = enough
			}
			out := post(t, local(), "http://"+address+"/", limit)
			if out.Kind != row.kind || !strings.HasPrefix(out.Reason, row.reason) || row.reason == "" && out.Reason != "" {
				t.Errorf("outcome %+v, want kind %d, %q", out, row.kind, row.reason)
			}
			if !strings.HasPrefix(string(out.Body), row.body) {
				t.Errorf("body %q, want %q", out.Body, row.body)
			}
			if out.Took > limit+2*time.Second {
				t.Errorf("took %s", out.Took)
			}
			if strings.HasPrefix(row.name, "HTTP/2 status") {
				return // a good answer: its connection is kept
			}
			awaitEnd(t, ended)
		})
	}
}

func TestCompressedAnswerStaysCompressed(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if accepts := r.Header.Get("Accept-Encoding"); accepts != "" {
			t.Errorf("Accept-Encoding %q", accepts)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	out := post(t, local(), url, 5*time.Second)
	if want := bomb.Bytes()[:min(bomb.Len(), 64<<10)]; !bytes.Equal(out.Body, want) {
		t.Errorf("%d bytes of body, want the first %d of the compressed ones", len(out.Body), len(want))
	}
}

// A host that accepts and keeps silent would otherwise hold a socket of ours
// for each attempt, for good.
func TestHandshakeEndsWithItsAttempt(t *testing.T) {
	address, ended := speak(t, say(""))
	out := post(t, local(), "https://"+address, 100*time.Millisecond)
	if out.Kind != outbound.Failed || out.Reason != "timed out after 0.1 s waiting for the TLS handshake" {
		t.Errorf("outcome %+v", out)
	}
	awaitEnd(t, ended)
}

func TestConnectEndsWithItsAttempt(t *testing.T) {
	n := newNetwork(t)
	n.name("hole.test", "93.184.216.34")
	c := outbound.New(n.cfg)
	ended := make(chan struct{})
	c.Connect(func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	out := post(t, c, "https://hole.test/", 100*time.Millisecond)
	if out.Kind != outbound.Failed || out.Reason != "timed out after 0.1 s connecting" {
		t.Errorf("outcome %+v", out)
	}
	awaitEnd(t, ended)
}

// HTTP/2 is not offered, so that none of its frames are ever read.
func TestHTTP2IsNotSpoken(t *testing.T) {
	for name, protocols := range map[string][]string{
		"both": {"h2", "http/1.1"}, "HTTP/2 alone": {"h2"},
	} {
		t.Run(name, func(t *testing.T) {
			var offered []string
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != 1 {
					t.Errorf("request in %s", r.Proto)
				}
			}))
			srv.EnableHTTP2 = true
			srv.TLS = &tls.Config{NextProtos: protocols, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				offered = hello.SupportedProtos
				return nil, nil
			}}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			out := post(t, outbound.New(outbound.Config{AllowPrivateTargets: true, RootCAs: pool}), srv.URL, 5*time.Second)
			if out.Kind != outbound.Answered || !slices.Equal(offered, []string{"http/1.1"}) {
				t.Errorf("outcome %+v, offered %s", out, offered)
			}
		})
	}
}

// Failures of name servers are told apart from failures of our own resolver.
func TestNamesThatDoNotResolve(t *testing.T) {
	n := newNetwork(t)
	for name, want := range map[string]string{
		"absent.test": "the name does not resolve",
		"broken.test": "the name could not be resolved: its name servers answered with an error",
		"silent.test": "timed out after 0.3 s resolving the name",
	} {
		t.Run(name, func(t *testing.T) {
			out := post(t, n.client(), "https://"+name+"/", 300*time.Millisecond)
			if out.Kind != outbound.Failed || out.Reason != want {
				t.Errorf("outcome %+v, want %q", out, want)
			}
		})
	}
	n.dns.Close()
	if out := post(t, n.client(), "https://absent.test/", 5*time.Second); out.Kind != outbound.Ours {
		t.Errorf("resolver is down: outcome %+v", out)
	}
}

func TestFailuresOfThisHostAreOurs(t *testing.T) {
	for _, row := range []struct {
		name, target string
		code         syscall.Errno
		kind         outbound.Kind
		reason       string
	}{
		{"out of files", "93.184.216.34", syscall.EMFILE, outbound.Ours, "we could not open a connection"},
		{"out of local ports", "93.184.216.34", syscall.EADDRNOTAVAIL, outbound.Ours, "we could not open a connection"},
		{"local firewall", "93.184.216.34", syscall.EPERM, outbound.Ours, "we could not open a connection"},
		{"no IPv6 here", "2606:4700::1", syscall.ENETUNREACH, outbound.Failed, "the name has only IPv6 addresses, which cannot be reached from here"},
		{"no IPv6 at all", "2606:4700::1", syscall.EADDRNOTAVAIL, outbound.Failed, "the name has only IPv6 addresses, which cannot be reached from here"},
		{"unreachable", "93.184.216.34", syscall.EHOSTUNREACH, outbound.Failed, "no route to the host"},
		{"lost", "93.184.216.34", syscall.ETIMEDOUT, outbound.Failed, "the host did not answer in time"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := outbound.New(outbound.Config{})
			c.Connect(func(_ context.Context, target netip.AddrPort) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(target), Err: os.NewSyscallError("connect", row.code)}
			})
			out := post(t, c, "https://"+net.JoinHostPort(row.target, "443")+"/", time.Second)
			if out.Kind != row.kind || out.Reason != row.reason || !errors.Is(out.Err, row.code) {
				t.Errorf("outcome %+v, want kind %d, %q", out, row.kind, row.reason)
			}
		})
	}
}

// resolver answers every name with these addresses in this order.
type resolver []string

func (r resolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var addrs []netip.Addr
	for _, text := range r {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

// That a name's IPv6 address cannot be reached from here says nothing about
// its owner, whose IPv4 address failed as well.
func TestFailureOfTheReachableAddressIsTold(t *testing.T) {
	for _, order := range []resolver{{"2606:4700::1", "93.184.216.34"}, {"93.184.216.34", "2606:4700::1"}} {
		c := outbound.New(outbound.Config{Resolver: order})
		c.Connect(func(_ context.Context, target netip.AddrPort) (net.Conn, error) {
			code := syscall.ECONNREFUSED
			if target.Addr().Is6() {
				code = syscall.ENETUNREACH
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(target), Err: os.NewSyscallError("connect", code)}
		})
		if out := post(t, c, "https://two.test/", 5*time.Second); out.Kind != outbound.Failed || out.Reason != "connection refused" {
			t.Errorf("%s: outcome %+v", order, out)
		}
	}
}

func TestConnectionWithoutTLSIsClosed(t *testing.T) {
	conn, closed := newPipe()
	c := outbound.New(outbound.Config{AllowPrivateTargets: true})
	c.Connect(func(context.Context, netip.AddrPort) (net.Conn, error) { return conn, nil })
	if out := post(t, c, "https://127.0.0.1/", 5*time.Second); out.Reason != "the receiver does not speak TLS on this port" {
		t.Errorf("outcome %+v", out)
	}
	awaitEnd(t, closed)
}

// newPipe is a connection to a receiver that answers whatever comes with an
// error in plain HTTP, and that tells when it was closed.
func newPipe() (ours net.Conn, closed <-chan struct{}) {
	ours, theirs := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = theirs.Read(make([]byte, 4096))
		_, _ = io.WriteString(theirs, "HTTP/1.1 400 Bad Request\r\n\r\n")
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, ended
}

// Any bytes at all end as an answer or as a failure of the receiver's.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", okHeader + "\r\n", okHeader + "Content-Length: 5\r\n\r\nhello", "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
		okHeader + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "HTTP/1.1 429 x\r\nRetry-After: 99999999999\r\n\r\n",
		"HTTP/1.1 001 \r\n\r\n", "HTTP/1.1 100 \r\n\r\n" + okHeader + "\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := local()
		c.Connect(func(context.Context, netip.AddrPort) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = theirs.Read(make([]byte, 4096))
				_, _ = theirs.Write(answer)
				theirs.Close()
			}()
			return ours, nil
		})
		out := post(t, c, "http://127.0.0.1/", 2*time.Second)
		switch {
		case out.Kind == outbound.Answered && (out.Reason != "" || out.Status < 100 || len(out.Body) > 64<<10 || out.RetryAfter < 0):
			t.Errorf("answer %q: outcome %+v", answer, out)
		case out.Kind != outbound.Answered && out.Kind != outbound.Failed:
			t.Errorf("answer %q: outcome %+v", answer, out)
		}
	})
}
