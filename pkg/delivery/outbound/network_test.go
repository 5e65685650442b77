package outbound_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
)

// network is an internet of the test's own: name servers that the system's
// resolver code asks over UDP, and hosts at public addresses, which are
// listeners on this machine. What would be dialled elsewhere is written down
// and refused.
type network struct {
	mu      sync.Mutex
	names   map[string]func(lookup int) []string // addresses of a name, by how often it was asked
	lookups map[string]int
	hosts   map[netip.AddrPort]string
	dialled []string
	dns     net.PacketConn
	cfg     outbound.Config
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dns.Close() })
	n := &network{
		names: map[string]func(int) []string{}, lookups: map[string]int{},
		hosts: map[netip.AddrPort]string{}, dns: dns,
	}
	n.cfg.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	go n.answer()
	return n
}

func (n *network) client() *outbound.Client {
	c := outbound.New(n.cfg)
	c.Connect(n.connect)
	return c
}

// connect stands for the sockets.
func (n *network) connect(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, target.Addr().String())
	host, ok := n.hosts[target]
	n.mu.Unlock()
	if !ok {
		host = "127.0.0.1:1" // refuses
	}
	return new(net.Dialer).DialContext(ctx, "tcp", host)
}

// name makes a name with these addresses at every lookup.
func (n *network) name(name string, addrs ...string) {
	n.rebind(name, func(int) []string { return addrs })
}

func (n *network) rebind(name string, addrs func(lookup int) []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name+"."] = addrs
}

// host puts an HTTPS server with a certificate for the names at the address.
func (n *network) host(t *testing.T, address string, h http.HandlerFunc, names ...string) {
	t.Helper()
	now := time.Now()
	cert, pool := certificate(t, now.Add(-time.Hour), now.Add(time.Hour), names...)
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet()
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	n.cfg.RootCAs = pool
	n.hosts[netip.AddrPortFrom(netip.MustParseAddr(address), 443)] = srv.Listener.Addr().String()
}

func (n *network) reached() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	reached := n.dialled
	n.dialled = nil
	return reached
}

// answer is the name server. Beside the names it knows broken.test, whose
// servers fail, and silent.test, whose servers do not answer.
func (n *network) answer() {
	buffer := make([]byte, 1500)
	for {
		size, from, err := n.dns.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := n.reply(buffer[:size]); reply != nil {
			_, _ = n.dns.WriteTo(reply, from)
		}
	}
}

func (n *network) reply(query []byte) []byte {
	const typeA, typeAAAA = 1, 28
	name, end := "", 12
	for query[end] != 0 {
		label := int(query[end])
		name += string(query[end+1:end+1+label]) + "."
		end += 1 + label
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	reply := append([]byte(nil), query[:end+5]...) // header and question
	reply[2], reply[3] = 0x81, 0x80                // an answer, recursion available
	clear(reply[6:12])
	n.mu.Lock()
	defer n.mu.Unlock()
	addrs, known := n.names[name]
	switch {
	case strings.HasPrefix(name, "silent.test."):
		return nil
	case strings.HasPrefix(name, "broken.test."):
		reply[3] |= 2 // SERVFAIL
		return reply
	case !known:
		reply[3] |= 3 // NXDOMAIN
		return reply
	}
	if kind == typeA {
		n.lookups[name]++
	}
	for _, text := range addrs(max(1, n.lookups[name])) {
		addr := netip.MustParseAddr(text)
		if addr.Is4() != (kind == typeA) || addr.Is4In6() != false && kind != typeAAAA {
			continue
		}
		reply[7]++
		reply = append(reply, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(addr.AsSlice())))
		reply = append(reply, addr.AsSlice()...)
	}
	return reply
}
