package egress

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pinwheel-run/pinwheel/internal/lib/percent"
)

const (
	socketHandshake = 15 * time.Second // from the resolution of the name to the server's answer
	maxGreeting     = 64 << 10         // bytes from a server until the connection is a WebSocket, TLS included
	socketFragment  = 64 << 10         // a longer message is written in frames of this many bytes
)

var errGreeting = fmt.Errorf("the handshake has more than %d bytes", maxGreeting)

// greeting is a connection that limits how many bytes can be read, until the limit is lifted.
type greeting struct {
	net.Conn
	left   atomic.Int64
	unwait func() bool // stops closing it at the end of the context
}

func (g *greeting) Read(p []byte) (int, error) {
	left := g.left.Load()
	if left <= 0 {
		return 0, errGreeting
	}
	n, err := g.Conn.Read(p[:min(int64(len(p)), left)])
	g.left.Add(-int64(n))
	return n, err
}

// Upgrade opens a WebSocket to a ws or wss URL, under the same guard as requests. It offers no extensions and follows
// no redirects. protocol is the one that the server chose from protocols. If there are any, the server must choose one.
func (c *Connections) Upgrade(ctx context.Context, address string,
	protocols []string) (conn *websocket.Conn, protocol string, err error) {
	u, err := url.Parse(percent.Escape(address))
	if err != nil {
		return nil, "", errors.New("the URL cannot be sent")
	}
	header := http.Header{"User-Agent": {"Pinwheel"}}
	if password, _ := u.User.Password(); u.User != nil {
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		u.User = nil
	}
	var g *greeting
	dialer := websocket.Dialer{
		HandshakeTimeout: socketHandshake, Subprotocols: protocols, TLSClientConfig: c.client.TLS,
		WriteBufferSize: socketFragment,
		WriteBufferPool: &c.client.frames,
		NetDialContext: func(dialing context.Context, network, address string) (net.Conn, error) {
			raw, err := c.dial(dialing, network, address)
			if err != nil {
				return nil, err
			}
			g = &greeting{Conn: raw, unwait: context.AfterFunc(ctx, func() { _ = raw.Close() })}
			g.left.Store(maxGreeting)
			return g, nil
		},
	}
	//nolint:bodyclose // websocket: "the application does not need to close it"
	conn, resp, err := dialer.DialContext(ctx, u.String(), header)
	if g != nil {
		g.unwait()
	}
	switch {
	case err == nil:
	case errors.Is(err, websocket.ErrBadHandshake):
		return nil, "", fmt.Errorf("the server does not answer as a WebSocket server: %s", resp.Status)
	case errors.Is(err, errGreeting):
		return nil, "", errGreeting
	default:
		return nil, "", inWords(err, server(u), false)
	}
	if protocol, err = agreed(resp.Header, protocols); err != nil {
		_ = conn.Close()
		return nil, "", err
	}
	g.left.Store(math.MaxInt64)
	return conn, protocol, nil
}

// agreed returns the protocol that the server chose.
func agreed(h http.Header, protocols []string) (string, error) {
	if len(h.Values("Sec-Websocket-Extensions")) > 0 {
		return "", errors.New("the server uses an extension that was not offered")
	}
	chosen := h.Values("Sec-Websocket-Protocol")
	switch {
	case len(chosen) == 0 && len(protocols) == 0:
		return "", nil
	case len(chosen) == 0:
		return "", errors.New("the server has chosen none of the protocols")
	case len(chosen) > 1 || !slices.Contains(protocols, chosen[0]):
		return "", fmt.Errorf("the server has chosen a protocol that was not offered: %.100q", chosen)
	}
	return chosen[0], nil
}
