package outbound

import (
	"errors"
	"net/netip"
	"strings"
)

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
		return &forbidden{"the name " + host + " stands for the sender itself"}
	case isNumber(last):
		return &forbidden{host + " is neither a name nor an address, which is written as 192.0.2.1 or [2001:db8::1]"}
	}
	return nil
}

// isNumber reports whether a label is a number to those who read addresses
// leniently: of decimal or octal digits, or hexadecimal.
func isNumber(label string) bool {
	if hex, found := strings.CutPrefix(label, "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}
