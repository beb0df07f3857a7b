package natstest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// link forwards connections to a port, until it is cut.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	dead  bool
	conns map[net.Conn]bool
}

func openLink(t testing.TB, port int) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{listener: listener, to: fmt.Sprintf("127.0.0.1:%d", port), conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.pass(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		running.Wait()
	})
	return l
}

// pass forwards one connection until either end is closed.
func (l *link) pass(from net.Conn) {
	to, err := net.Dial("tcp", l.to)
	if err != nil || !l.hold(from, to) {
		_ = from.Close()
		if err == nil {
			_ = to.Close()
		}
		return
	}
	var both sync.WaitGroup
	for _, c := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(c[0], c[1])
			_, _ = c[0].Close(), c[1].Close()
		})
	}
	both.Wait()
	l.mu.Lock()
	delete(l.conns, from)
	delete(l.conns, to)
	l.mu.Unlock()
}

func (l *link) hold(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		for _, c := range conns {
			l.conns[c] = true
		}
	}
	return !l.dead
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *link) heal() {
	l.mu.Lock()
	l.dead = false
	l.mu.Unlock()
}
