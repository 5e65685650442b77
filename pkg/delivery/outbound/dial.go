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

// maxAddresses bounds the addresses of a name that are dialled, so that a name
// with hundreds does not make a scanner of us.
const maxAddresses = 6

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
	return d.dialEach(ctx, targets[:min(len(targets), maxAddresses)])
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

// minDialTime is what an address gets at least while the attempt has time: more
// than a handshake between continents takes.
const minDialTime = 500 * time.Millisecond

// dialEach connects to the first target that accepts, one after the other. Each
// gets its share of the time that is left, as [net.Dialer] gives it.
func (d *dialer) dialEach(ctx context.Context, targets []netip.AddrPort) (net.Conn, error) {
	var failure error
	for i, target := range targets {
		conn, err := d.dialOne(ctx, target, len(targets)-i)
		if err == nil {
			return conn, nil
		}
		if failure == nil || !lacksIPv6(err) {
			failure = err
		}
	}
	return nil, failure
}

// dialOne connects to a target, with as many to come that share the time, itself
// included.
func (d *dialer) dialOne(ctx context.Context, target netip.AddrPort, sharers int) (net.Conn, error) {
	if end, ends := ctx.Deadline(); ends {
		limited, cancel := context.WithTimeout(ctx, max(time.Until(end)/time.Duration(sharers), minDialTime))
		defer cancel()
		ctx = limited
	}
	return d.connect(ctx, target)
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
