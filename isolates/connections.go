package isolates

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	maxConnsPerHost = 64        // of an owner in a process
	maxConns        = 512       // of an owner in a process, WebSockets included
	streamBuffer    = 128 << 10 // what a server may send ahead of the reader over HTTP/2, for each response
)

// connections are those of one owner. Nothing of them is another owner's: no idle connection, no stream of HTTP/2, no session of TLS,
// and no place among so many to a host.
type connections struct {
	fetcher   *fetcher
	owner     string
	transport *http.Transport
	places    chan struct{} // one in it for each connection there is or is to be
	uses      int           // requests and connections; by fetcher.mu
	wanting   int           // how many wait for a place; by fetcher.mu
}

// of gives the connections of an owner, to be released.
func (f *fetcher) of(owner string) *connections {
	if guard.HostConnections.Off() {
		owner = ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.owners[owner]
	if c == nil {
		c = &connections{fetcher: f, owner: owner, places: make(chan struct{}, maxConns)}
		c.transport = &http.Transport{
			DialContext: c.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: f.tls.Clone(),
			MaxIdleConns: 64, MaxIdleConnsPerHost: 8, MaxConnsPerHost: maxConnsPerHost, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: maxResponseHead, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamBuffer},
		}
		f.owners[owner] = c
	}
	c.uses++
	return c
}

// release takes back a use. What nobody uses is forgotten. A connection that idles now makes room for one that is wanted.
func (c *connections) release() {
	c.fetcher.mu.Lock()
	if c.uses--; c.uses == 0 {
		delete(c.fetcher.owners, c.owner)
	}
	wanted := c.wanting > 0
	c.fetcher.mu.Unlock()
	if wanted {
		c.transport.CloseIdleConnections()
	}
}

// want counts a dial, which is a use, and one that waits for a place.
func (c *connections) want(uses, wanting int) {
	c.fetcher.mu.Lock()
	defer c.fetcher.mu.Unlock()
	c.uses += uses
	c.wanting += wanting
}

// take waits until the owner has a place for one connection more. Idle connections make room.
func (c *connections) take(ctx context.Context) error {
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

// dial connects, and counts the connection as one of the owner's until it is closed. Only a request dials: c is not forgotten yet.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.want(1, 0)
	if err := c.take(ctx); err != nil {
		c.release()
		return nil, err
	}
	free := sync.OnceFunc(func() {
		<-c.places
		c.release()
	})
	conn, err := c.fetcher.dial(ctx, network, address)
	if err != nil {
		free()
		return nil, err
	}
	return &placed{Conn: conn, free: free}, nil
}

// placed is a connection that gives back its place when it is closed.
type placed struct {
	net.Conn
	free func()
}

func (p *placed) Close() error {
	defer p.free()
	return p.Conn.Close()
}
