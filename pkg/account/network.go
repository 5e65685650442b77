package account

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/commerce-integration/service/pkg/base/fault"
)

// MaxKeyNetworks is the most networks that one key may name.
const MaxKeyNetworks = 50

// networks checks networks in CIDR notation.
func (c *Checks) networks(networks []string) {
	if len(networks) == 0 || len(networks) > MaxKeyNetworks {
		c.Add("allowedNetworks", fault.DetailOutOfRange, "must name 1 to %d networks: leave it out for every address", MaxKeyNetworks)
	}
	for i, text := range networks {
		if problem := networkProblem(text); problem != "" {
			c.Add("allowedNetworks["+strconv.Itoa(i)+"]", fault.DetailFormat, "%s", problem)
		}
	}
}

func networkProblem(text string) string {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return "must be a network such as 203.0.113.0/24 or 2001:db8::/32; one address is a network with /32 or /128"
	case p.Addr().Is4In6():
		return "must be written as a network of IPv4"
	case p != p.Masked():
		return "must have no bits behind the length of its prefix: " + p.Masked().String()
	}
	return ""
}

// canonical sorts networks, each once and in one form. They have been checked.
func canonical(networks []string) []string {
	prefixes := make([]string, len(networks))
	for i, text := range networks {
		prefixes[i] = netip.MustParsePrefix(text).String()
	}
	slices.Sort(prefixes)
	return slices.Compact(prefixes)
}

// InNetworks reports whether one of the networks contains the address. None contains
// text that is not an address. An IPv4 address may be written as IPv6.
func InNetworks(networks []string, address string) bool {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(networks, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(addr.Unmap().WithZone(""))
	})
}
