package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// RefusedPorts returns the ports that no request goes to unless
// [Config.RefusedPorts] says otherwise: those of services that are not HTTP
// and that could take a request for a command, or that a host offers to
// itself.
func RefusedPorts() []uint16 {
	return []uint16{
		22,           // SSH
		23,           // Telnet
		25, 465, 587, // mail
		53,            // DNS
		111,           // RPC port mapper
		135,           // RPC endpoint mapper
		137, 138, 139, // NetBIOS
		445,   // SMB
		2049,  // NFS
		3306,  // MySQL
		3389,  // remote desktop
		5432,  // PostgreSQL
		6379,  // Redis
		9001,  // the Lambda runtime API
		11211, // memcached
		27017, // MongoDB
	}
}

// guard decides what may be dialled.
type guard struct {
	classifier   *classifier
	ports        []uint16
	allowPrivate bool
}

// forbidden is a target that must not be dialled.
type forbidden struct{ reason string }

func (e *forbidden) Error() string { return "forbidden target: " + e.reason }

// checkPort returns nil or a [*forbidden].
func (g *guard) checkPort(port uint16) error {
	if port == 0 || slices.Contains(g.ports, port) {
		return &forbidden{fmt.Sprintf("port %d is not allowed", port)}
	}
	return nil
}

// checkAddress returns nil or a [*forbidden]. Its reason leaves the address
// out: the resolver may know names that only the deployment should.
func (g *guard) checkAddress(addr netip.Addr) error {
	if g.allowPrivate {
		return nil
	}
	if c := g.classifier.classify(addr); c != public {
		return &forbidden{"the address is " + string(c)}
	}
	return nil
}

// checkSocket looks at what the kernel is about to be asked for: the last
// moment, after which nothing can change the address.
func (g *guard) checkSocket(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return &forbidden{"only TCP addresses may be asked"}
	}
	if err := g.checkPort(target.Port()); err != nil {
		return err
	}
	return g.checkAddress(target.Addr())
}

// portOf reads a port's digits; 0 is none.
func portOf(text string) uint16 {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}

// Refusal says why a client of this configuration would refuse every request
// to the host and port, in words for the owner of the target; "" when it
// might send one. The host is a name, or an address without brackets. A name
// is not resolved: where it leads may change, and is checked whenever a
// request is sent. Still refused are localhost, which leads nowhere else (RFC
// 6761, 6.3), and what ends in a number: no name does (RFC 3696, 2), but some
// resolvers take it for an address.
func (cfg Config) Refusal(host string, port uint16) string {
	g := cfg.guard()
	err := g.checkPort(port)
	if addr, notAddress := netip.ParseAddr(host); err == nil && notAddress == nil {
		err = g.checkAddress(addr)
	} else if err == nil && !g.allowPrivate {
		err = checkName(host)
	}
	var f *forbidden
	if errors.As(err, &f) {
		return f.reason
	}
	return ""
}

// checkName returns nil or a [*forbidden].
func checkName(host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case last == "localhost":
		return &forbidden{"the name " + host + " means the sender itself"}
	case isNumber(last):
		return &forbidden{host + " is neither a name nor an address, which is written as 192.0.2.1 or [2001:db8::1]"}
	}
	return nil
}

// isNumber reports whether lenient readers of addresses take a label for a
// number: of decimal or octal digits, or hexadecimal.
func isNumber(label string) bool {
	if hex, found := strings.CutPrefix(label, "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}
