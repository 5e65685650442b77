package outbound

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// Connect replaces the sockets of a client: connect gets what would be
// dialled, after all checks but the socket's own.
func (c *Client) Connect(connect func(ctx context.Context, target netip.AddrPort) (net.Conn, error)) {
	c.dialer.connect = connect
}

// OfferHTTP2 lets a client take part in HTTP/2, to compare.
func (c *Client) OfferHTTP2() {
	c.dialer.tls.NextProtos = []string{"h2", "http/1.1"}
	c.transport.Protocols = new(http.Protocols)
	c.transport.Protocols.SetHTTP1(true)
	c.transport.Protocols.SetHTTP2(true)
}
