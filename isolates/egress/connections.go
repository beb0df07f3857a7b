package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	maxConnsPerHost = 64        // of an owner in a process
	maxConns        = 512       // of an owner in a process, WebSockets included
	streamBuffer    = 128 << 10 // bytes that a server may send ahead of the reader over HTTP/2, for each response
)

// Connections are the connections of one owner. Owners share no idle connection, no stream of HTTP/2, no TLS session,
// and no limit of connections to a host.
type Connections struct {
	client    *Client
	owner     string
	transport *http.Transport
	places    chan struct{} // has an element for each open or planned connection
	uses      int           // requests and connections; guarded by Client.mu
	wanting   int           // dials that wait for a place; guarded by Client.mu
}

// Of returns the connections of an owner. The caller must Release them. Any goroutine may call it.
func (f *Client) Of(owner string) *Connections {
	if guard.HostConnections.Off() {
		owner = ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.owners[owner]
	if c == nil {
		c = &Connections{client: f, owner: owner, places: make(chan struct{}, maxConns)}
		c.transport = &http.Transport{
			DialContext: c.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: f.TLS.Clone(),
			MaxIdleConns: 64, MaxIdleConnsPerHost: 8, MaxConnsPerHost: maxConnsPerHost, IdleConnTimeout: 90 * time.Second,
			DisableCompression:     true, // see acceptGzip
			MaxResponseHeaderBytes: MaxResponseHead, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer},
		}
		f.owners[owner] = c
	}
	c.uses++
	return c
}

// Release ends a use. Unused Connections are removed. If a dial waits for a place, idle connections are closed.
func (c *Connections) Release() {
	c.client.mu.Lock()
	if c.uses--; c.uses == 0 {
		delete(c.client.owners, c.owner)
	}
	wanted := c.wanting > 0
	c.client.mu.Unlock()
	if wanted {
		c.transport.CloseIdleConnections()
	}
}

// want counts dials, which are uses, and dials that wait for a place.
func (c *Connections) want(uses, wanting int) {
	c.client.mu.Lock()
	defer c.client.mu.Unlock()
	c.uses += uses
	c.wanting += wanting
}

// take waits until the owner has a place for one more connection. Idle connections are closed to make room.
func (c *Connections) take(ctx context.Context) error {
	select {
	case c.places <- struct{}{}:
		return nil
	default:
	}
	c.want(0, 1)
	defer c.want(0, -1)
	c.transport.CloseIdleConnections()
	select {
	case c.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial connects. The connection counts as one of the owner's until it is closed. Only a request dials, so c is still in
// use.
func (c *Connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.want(1, 0)
	if err := c.take(ctx); err != nil {
		c.Release()
		return nil, err
	}
	free := sync.OnceFunc(func() {
		<-c.places
		c.Release()
	})
	conn, err := c.client.connect(ctx, c.owner, network, address)
	if err != nil {
		free()
		return nil, err
	}
	return &placed{Conn: conn, free: free}, nil
}

// Dial connects to address, HOST:PORT, under the guard, for a process that speaks for the owner. It waits while the
// owner has as many connections as it may. ctx bounds only how long that takes. The connection counts as one of the
// owner's until it is closed. The error is Told: in words for the author of a handler.
func (c *Connections) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, Tell(err, address)
	}
	return conn, nil
}

// placed is a connection that frees its place when it is closed.
type placed struct {
	net.Conn
	free func()
}

// CloseWrite says that nothing more is sent. What the server sends can be read until it ends the connection.
func (p *placed) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection and frees its place.
func (p *placed) Close() error {
	defer p.free()
	return p.Conn.Close()
}
