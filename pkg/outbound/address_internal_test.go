package outbound

import (
	"net/netip"
	"testing"
)

// Each row stands at the edge of a block: the last address before it, its
// first, its last, the first after it, and the forms that carry IPv4.
func TestAddressesAreClassifiedByTheRegistries(t *testing.T) {
	c := newClassifier()
	for _, row := range []struct{ address, want string }{
		{"0.0.0.0", "this network"}, {"0.1.2.3", "this network"}, {"0.255.255.255", "this network"}, {"1.0.0.0", Public},
		{"9.255.255.255", Public}, {"10.0.0.0", "private"}, {"10.255.255.255", "private"}, {"11.0.0.0", Public},
		{"100.63.255.255", Public}, {"100.64.0.0", "shared address space"}, {"100.127.255.255", "shared address space"}, {"100.128.0.0", Public},
		{"126.255.255.255", Public}, {"127.0.0.1", "loopback"}, {"127.255.255.255", "loopback"}, {"128.0.0.0", Public},
		{"169.253.255.255", Public}, {"169.254.169.254", "link-local"}, {"169.255.0.0", Public},
		{"172.15.255.255", Public}, {"172.16.0.0", "private"}, {"172.31.255.255", "private"}, {"172.32.0.0", Public},
		{"191.255.255.255", Public}, {"192.0.0.0", "protocol assignment"}, {"192.0.0.8", "protocol assignment"},
		{"192.0.0.9", Public}, {"192.0.0.10", Public}, {"192.0.0.11", "protocol assignment"},
		{"192.0.0.170", "protocol assignment"}, {"192.0.0.255", "protocol assignment"}, {"192.0.1.0", Public},
		{"192.0.1.255", Public}, {"192.0.2.1", "documentation"}, {"192.0.3.0", Public},
		{"192.31.196.1", Public}, {"192.52.193.1", Public}, {"192.175.48.1", Public},
		{"192.88.98.255", Public}, {"192.88.99.2", "deprecated 6to4 relay"}, {"192.88.100.0", Public},
		{"192.167.255.255", Public}, {"192.168.0.0", "private"}, {"192.168.255.255", "private"}, {"192.169.0.0", Public},
		{"198.17.255.255", Public}, {"198.18.0.0", "benchmarking"}, {"198.19.255.255", "benchmarking"}, {"198.20.0.0", Public},
		{"198.51.99.255", Public}, {"198.51.100.0", "documentation"}, {"198.51.101.0", Public},
		{"203.0.112.255", Public}, {"203.0.113.255", "documentation"}, {"203.0.114.0", Public},
		{"223.255.255.255", Public}, {"224.0.0.1", "multicast"}, {"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"}, {"255.255.255.254", "reserved"}, {"255.255.255.255", "broadcast"},

		{"::", "unspecified"}, {"::1", "loopback"}, {"::2", "outside the global unicast space"},
		{"::7f00:1", "outside the global unicast space"}, {"::ffff:0:7f00:1", "outside the global unicast space"},
		{"::ffff:127.0.0.1", "loopback"}, {"::ffff:169.254.169.254", "link-local"}, {"::ffff:8.8.8.8", Public},
		{"64:ff9b::7f00:1", "loopback"}, {"64:ff9b::a9fe:a9fe", "link-local"}, {"64:ff9b::808:808", Public},
		{"64:ff9b:0:0:0:1::", "outside the global unicast space"}, {"64:ff9b:1::1", "local-use translation"}, {"64:ff9b:2::1", "outside the global unicast space"},
		{"100::1", "discard-only"}, {"100:0:0:1::1", "dummy prefix"}, {"100:0:0:2::1", "outside the global unicast space"},
		{"1fff:ffff::1", "outside the global unicast space"}, {"2000::1", Public},
		{"2001::1", "this network"}, {"2001:0:808:808::f7f7:f7f7", Public}, {"2001:0:7f00:1::f7f7:f7f7", "loopback"},
		{"2001:0:808:808::80ff:fffe", "loopback"},
		{"2001:1::1", Public}, {"2001:1::2", Public}, {"2001:1::3", Public}, {"2001:1::4", "protocol assignment"},
		{"2001:2::1", "benchmarking"}, {"2001:2:1::", "protocol assignment"}, {"2001:3::1", Public},
		{"2001:4:112::1", Public}, {"2001:4:113::1", "protocol assignment"},
		{"2001:10::1", "deprecated ORCHID"}, {"2001:20::1", Public}, {"2001:30::1", Public}, {"2001:40::1", "protocol assignment"},
		{"2001:1ff:ffff::1", "protocol assignment"}, {"2001:200::1", Public},
		{"2001:db7:ffff::1", Public}, {"2001:db8::1", "documentation"}, {"2001:db9::1", Public},
		{"2002:7f00:1::1", "loopback"}, {"2002:a00:1::", "private"}, {"2002:808:808::1", Public},
		{"2606:4700:4700::1111", Public}, {"2620:4f:8000::1", Public},
		{"3ffe:ffff::1", Public}, {"3fff::1", "documentation"}, {"3fff:fff:ffff::1", "documentation"}, {"3fff:1000::1", Public},
		{"4000::1", "outside the global unicast space"}, {"5f00::1", "segment routing"}, {"5f01::1", "outside the global unicast space"},
		{"fbff::1", "outside the global unicast space"}, {"fc00::1", "unique local"}, {"fd00:ec2::254", "unique local"}, {"fe00::1", "outside the global unicast space"},
		{"fe80::1", "link-local"}, {"febf::1", "link-local"}, {"fec0::1", "deprecated site-local"}, {"ff02::1", "multicast"},
		{"fe80::1%eth0", "scoped to a link"}, {"2606:4700::1%eth0", "scoped to a link"},
	} {
		if got := c.classify(netip.MustParseAddr(row.address)); got != row.want {
			t.Errorf("classify(%s) = %q, want %q", row.address, got, row.want)
		}
	}
}

func TestOnlyCheckedTCPAddressesAreDialled(t *testing.T) {
	check := guard(newClassifier())
	for _, row := range []struct {
		network, address string
		allowed          bool
	}{
		{"tcp4", "8.8.8.8:443", true},
		{"tcp6", "[2606:4700:4700::1111]:443", true},
		{"tcp4", "127.0.0.1:443", false},
		{"tcp6", "[::ffff:10.0.0.1]:443", false},
		{"unix", "/run/docker.sock", false},
		{"udp4", "8.8.8.8:53", false},
		{"tcp4", "example.com:443", false},
	} {
		if err := check(row.network, row.address, nil); (err == nil) != row.allowed {
			t.Errorf("dial %s %s: %v, want allowed %t", row.network, row.address, err, row.allowed)
		}
	}
}
