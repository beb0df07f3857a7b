package gateway

import (
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

const (
	// clientShare is the part of all connections that clients at one address may have: a quarter.
	clientShare = 4
	// looks is how many idle connections are looked at for one of a client that has many.
	looks = 32
)

// connections bounds the open connections of a process, and those of each client. Idle ones make room: those of a
// client that has its share, or, when there is no room at all, those of the clients that have most. A connection is
// idle until the headers of a request have come. Any goroutine may call its methods.
type connections struct {
	most   int                     // of all clients
	proxy  func(a netip.Addr) bool // reports whether a stands for many clients. It has no share
	closed func(why string)        // counts a connection that was closed for lack of room

	mu      sync.Mutex
	changed sync.Cond // there may be room, or an idle connection, or no more connections are wanted
	over    bool
	open    int
	peers   map[netip.Prefix]*peer
	idle    idle // of clients
}

// peer is who has an address, or a network of 64 bits.
type peer struct {
	open int
	idle idle
}

// Reasons why a connection is closed for lack of room.
const (
	closedShare = "share" // a new one, of a client that has its share
	closedIdle  = "idle"
)

func newConnections(most int, proxy func(netip.Addr) bool, closed func(string)) *connections {
	c := &connections{most: most, proxy: proxy, closed: closed, peers: map[netip.Prefix]*peer{}, idle: idle{of: everybody}}
	c.changed.L = &c.mu
	return c
}

// addressOf is the address of a client; the zero Addr when it has none.
func addressOf(conn net.Conn) netip.Addr {
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return at.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// networkOf is what counts as one client. Whoever has an IPv6 address usually has 2⁶⁴ of them.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero Addr has none
	return p
}

// heaviest is an idle connection of a client that has many. The caller holds the lock.
func (c *connections) heaviest() (found *connection) {
	for range looks {
		one := c.idle.any()
		if one == nil {
			return nil
		}
		if found == nil || one.peer.open > found.peer.open {
			found = one
		}
	}
	return found
}

// admit takes a connection, and waits until there is room for it. It returns nil when its client has no room, or when
// no more connections are wanted, and closes it. One goroutine calls it.
func (c *connections) admit(raw net.Conn) net.Conn {
	at := addressOf(raw)
	conn := &connection{Conn: raw, all: c, network: networkOf(at)}
	var victim *connection
	refused := false
	c.mu.Lock()
	if conn.network.IsValid() && !c.proxy(at) {
		if cl := c.peers[conn.network]; cl != nil && cl.open >= max(1, c.most/clientShare) {
			victim = cl.idle.any()
			refused = victim == nil
		}
	}
	if !refused && victim == nil {
		victim = c.wait()
	}
	if !refused && !c.over {
		c.add(conn, !c.proxy(at))
	}
	over := c.over
	c.mu.Unlock()
	if victim != nil {
		c.closed(closedIdle)
		_ = victim.Close()
	}
	if refused {
		c.closed(closedShare)
	}
	if refused || over {
		_ = raw.Close()
		return nil
	}
	return conn
}

// wait waits until there is room, or no connection is wanted any more. It returns an idle connection that must be
// closed to make room; nil = there is room. The caller holds the lock.
func (c *connections) wait() *connection {
	for c.open >= c.most && !c.over {
		if victim := c.heaviest(); victim != nil {
			return victim
		}
		c.changed.Wait()
	}
	return nil
}

// add counts a connection. The caller holds the lock.
func (c *connections) add(conn *connection, shares bool) {
	c.open++
	if !shares || !conn.network.IsValid() {
		return
	}
	if conn.peer = c.peers[conn.network]; conn.peer == nil {
		conn.peer = &peer{idle: idle{of: ofClient}}
		c.peers[conn.network] = conn.peer
	}
	conn.peer.open++
	conn.rests(true)
}

// state learns what the server does with a connection. It is a ConnState.
func (c *connections) state(conn net.Conn, s http.ConnState) {
	t, encrypted := conn.(*tls.Conn)
	if encrypted {
		conn = t.NetConn()
	}
	one, ok := conn.(*connection)
	if !ok {
		return
	}
	if !encrypted && (s == http.StateNew || s == http.StateIdle) {
		one.line.begins.Store(true)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !one.gone {
		one.rests(s == http.StateNew || s == http.StateIdle)
		c.changed.Signal()
	}
}

// end lets admit return from now on.
func (c *connections) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.changed.Broadcast()
}

// connection is one that counts.
type connection struct {
	net.Conn
	all     *connections
	network netip.Prefix
	peer    *peer // nil = it has no share
	line    requestLine

	// all.mu guards what follows.
	gone bool
	at   [2]int // places in the lists of idle connections, plus one; 0 = none
}

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) { return c.line.read(p, c.Conn.Read) }

// rests says whether the connection is idle. Connections without a share are not closed. The caller holds the lock.
func (c *connection) rests(is bool) {
	if c.peer != nil {
		c.all.idle.set(c, is)
		c.peer.idle.set(c, is)
	}
}

// Close closes the connection, and gives its place to another one.
func (c *connection) Close() error {
	c.all.mu.Lock()
	if !c.gone {
		c.rests(false)
		c.gone = true
		c.all.open--
		if cl := c.peer; cl != nil {
			if cl.open--; cl.open == 0 {
				delete(c.all.peers, c.network)
			}
		}
		c.all.changed.Signal()
	}
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// idle is a list of idle connections.
type idle struct {
	of   list
	list []*connection
}

// list says which place of a connection is that in the list.
type list int

const (
	everybody list = iota
	ofClient
)

func (l *idle) set(c *connection, is bool) {
	at := &c.at[l.of]
	switch {
	case is && *at == 0:
		l.list = append(l.list, c)
		*at = len(l.list)
	case !is && *at != 0:
		last := l.list[len(l.list)-1]
		l.list[*at-1], last.at[l.of] = last, *at
		l.list[len(l.list)-1] = nil
		l.list, *at = l.list[:len(l.list)-1], 0
	}
}

// any is one of the list; nil = there is none.
func (l *idle) any() *connection {
	if len(l.list) == 0 {
		return nil
	}
	return l.list[rand.IntN(len(l.list))]
}

// boundedListener accepts connections that have room.
type boundedListener struct {
	net.Listener
	connections *connections
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := l.connections.admit(raw); conn != nil {
			return conn, nil
		}
	}
}

// Close implements net.Listener.
func (l *boundedListener) Close() error {
	l.connections.end()
	return l.Listener.Close()
}
