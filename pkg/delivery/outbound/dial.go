package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

const (
	// maxAddresses bounds the addresses of a name that are dialled, so that
	// a name with hundreds does not make a scanner of us.
	maxAddresses = 6
	// stagger is how long the next address waits for the one before it
	// (RFC 8305, 8).
	stagger = 250 * time.Millisecond
)

// Resolver finds the addresses of a name; [*net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialer connects to addresses that it has checked.
type dialer struct {
	resolver Resolver
	guard    *guard
	tls      *tls.Config
	connect  func(ctx context.Context, target netip.AddrPort) (net.Conn, error)
}

// dial resolves, checks every address and connects to one that passed. The
// checked address itself is dialled, never the name.
func (d *dialer) dial(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := attemptOf(ctx).bound(ctx)
	defer cancel()
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port := portOf(portText)
	if err := d.guard.checkPort(port); err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var targets []netip.AddrPort
	var refused error
	for _, addr := range addrs {
		if err := d.guard.checkAddress(addr); err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		targets = append(targets, netip.AddrPortFrom(addr, port))
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("dial %s: %w", host, refused)
	}
	attemptOf(ctx).enter(connecting)
	return d.race(ctx, alternate(targets))
}

// dialTLS is dial and the handshake. The transport gives its own handshakes
// no deadline, so that a silent host would keep a socket for good.
func (d *dialer) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := attemptOf(ctx).bound(ctx)
	defer cancel()
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	attemptOf(ctx).enter(handshaking)
	config := d.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address) // which dial has read
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	attemptOf(ctx).enter(resolving)
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap()
	}
	return addrs, nil
}

// alternate keeps the resolver's order of preference, but changes the family
// with every address, so that one family that is cut off costs little time.
func alternate(targets []netip.AddrPort) []netip.AddrPort {
	var families [2][]netip.AddrPort
	for _, t := range targets {
		family := 0
		if t.Addr().Is4() != targets[0].Addr().Is4() {
			family = 1
		}
		families[family] = append(families[family], t)
	}
	var mixed []netip.AddrPort
	for i := range targets {
		for _, family := range families {
			if i < len(family) && len(mixed) < maxAddresses {
				mixed = append(mixed, family[i])
			}
		}
	}
	return mixed
}

// race connects to the first target that accepts. Each starts when the one
// before it failed, or was given its head start.
func (d *dialer) race(ctx context.Context, targets []netip.AddrPort) (net.Conn, error) {
	if len(targets) == 1 {
		return d.connect(ctx, targets[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result)
	start := func(target netip.AddrPort) {
		conn, err := d.connect(ctx, target)
		select {
		case results <- result{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				conn.Close()
			}
		}
	}
	headStart := time.NewTimer(0)
	defer headStart.Stop()
	var failure error
	for started, ended := 0, 0; ended < len(targets); {
		next := headStart.C
		if started == len(targets) {
			next = nil
		}
		select {
		case <-next:
			go start(targets[started])
			started++
			headStart.Reset(stagger)
		case r := <-results:
			if r.err == nil {
				return r.conn, nil
			}
			ended++
			if failure == nil || lacksIPv6(failure) {
				failure = r.err
			}
			headStart.Reset(0)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, failure
}

// lacksIPv6 recognizes that this host has no way to IPv6 addresses.
func lacksIPv6(err error) bool {
	if !errors.Is(err, syscall.ENETUNREACH) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return false
	}
	var op *net.OpError
	if !errors.As(err, &op) {
		return false
	}
	target, ok := op.Addr.(*net.TCPAddr)
	return ok && target.IP.To4() == nil
}
