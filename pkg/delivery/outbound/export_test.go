package outbound

import (
	"context"
	"net"
	"net/netip"
)

// Connect replaces the sockets of a client: connect gets what would be
// dialled, after all checks but the socket's own.
func (c *Client) Connect(connect func(ctx context.Context, target netip.AddrPort) (net.Conn, error)) {
	c.dialer.connect = connect
}
