//go:build !linux || !(amd64 || arm64)

package transport

import (
	"context"
	"net"
	"net/netip"
)

// Dial opens a TCP connection to an address that needs no resolver.
func Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", to.String())
}
