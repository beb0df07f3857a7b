package guarantees_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is the network between one process and the server.
type proxy struct {
	to   string
	l    net.Listener
	port int

	mu      sync.Mutex
	conns   map[net.Conn]bool
	refuse  bool
	stalled bool
	flow    *sync.Cond // signals that a stall has ended
}

func openProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{to: to, l: l, port: l.Addr().(*net.TCPAddr).Port, conns: map[net.Conn]bool{}}
	p.flow = sync.NewCond(&p.mu)
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.heal()
		p.cut()
	})
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse
		p.mu.Unlock()
		if refuse {
			_ = in.Close()
			continue
		}
		out, err := net.DialTimeout("tcp", p.to, time.Second)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		p.conns[in], p.conns[out] = true, true
		p.mu.Unlock()
		go p.pipe(in, out)
		go p.pipe(out, in)
	}
}

func (p *proxy) pipe(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for p.stalled {
			p.flow.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut breaks every connection, with the data in transit.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// part cuts the connections, and allows no new ones until heal. Stalled data is lost.
func (p *proxy) part() {
	p.cut()
	p.mu.Lock()
	p.refuse, p.stalled = true, false
	p.flow.Broadcast()
	p.mu.Unlock()
	p.cut()
}

// stall keeps connections open and holds back all data until heal.
func (p *proxy) stall() {
	p.mu.Lock()
	p.stalled = true
	p.mu.Unlock()
}

func (p *proxy) heal() {
	p.mu.Lock()
	p.refuse, p.stalled = false, false
	p.flow.Broadcast()
	p.mu.Unlock()
}
