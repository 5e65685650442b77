package outbound_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commerce-integration/service/pkg/delivery/outbound"
)

func TestARefusalIsWhatNoRequestWouldPass(t *testing.T) {
	var public, private outbound.Config
	private.AllowPrivateTargets = true
	own := outbound.Config{RefusedPorts: []uint16{8080}}
	for _, test := range []struct {
		cfg  outbound.Config
		host string
		port uint16
		want string // part of the reason; "" for none
	}{
		{public, "example.com", 443, ""},
		{public, "example.com", 8443, ""},
		{public, "EXAMPLE.com.", 443, ""},
		{public, "8.8.8.8", 443, ""},
		{public, "2001:4860:4860::8888", 443, ""},
		{public, "1.2.3.4.example.com", 443, ""},
		{public, "xn--mnchen-3ya.de", 443, ""},
		{public, "0x.example", 443, ""},
		{public, "intranet", 443, ""}, // only a resolver can tell

		{public, "example.com", 25, "port 25 is not allowed"},
		{public, "8.8.8.8", 9001, "port 9001 is not allowed"},
		{public, "example.com", 0, "port 0 is not allowed"},
		{public, "example.com", 8080, ""},
		{own, "example.com", 8080, "port 8080 is not allowed"},
		{own, "example.com", 25, ""},

		{public, "127.0.0.1", 443, "the address is loopback"},
		{public, "10.1.2.3", 443, "is private"},
		{public, "169.254.169.254", 443, "is link-local"},
		{public, "0.0.0.0", 443, "is of this network"},
		{public, "255.255.255.255", 443, "is broadcast"},
		{public, "::1", 443, "is loopback"},
		{public, "::", 443, "is unspecified"},
		{public, "fd00:ec2::254", 443, "is unique local"},
		{public, "fe80::1%eth0", 443, "is scoped to a link"},
		{public, "::ffff:10.0.0.1", 443, "is private"},
		{public, "64:ff9b::a00:1", 443, "is private"},
		{public, "2002:7f00:1::", 443, "is loopback"},

		{public, "localhost", 443, "means the sender itself"},
		{public, "api.LocalHost.", 443, "means the sender itself"},
		{public, "localhost.example.com", 443, ""},
		{public, "127.1", 443, "neither a name nor an address"},
		{public, "127.0.0.1.", 443, "neither a name nor an address"},
		{public, "2130706433", 443, "neither a name nor an address"},
		{public, "0x7f000001", 443, "neither a name nor an address"},
		{public, "0X7F.0x", 443, "neither a name nor an address"},
		{public, "0177.0.0.01", 443, "neither a name nor an address"},
		{public, "256.256.256.256", 443, "neither a name nor an address"},

		{private, "127.0.0.1", 8080, ""},
		{private, "localhost", 8080, ""},
		{private, "127.1", 8080, ""},
		{private, "fe80::1%eth0", 8080, ""},
		{private, "127.0.0.1", 6379, "port 6379 is not allowed"},
	} {
		t.Run(fmt.Sprintf("%v_%v_%v", test.cfg, test.host, test.port), func(t *testing.T) {
			got := test.cfg.Refusal(test.host, test.port)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%s port %d, private targets %v: got %q, want %q", test.host, test.port, test.cfg.AllowPrivateTargets, got, test.want)
			}
		})
	}
}
