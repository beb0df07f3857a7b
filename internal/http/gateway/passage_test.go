package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// mover moves a body as a pipe does, with memory that it uses again.
type mover struct {
	s         *events.Stream
	cancelled chan string
	written   atomic.Int64 // bytes
	failed    chan error   // the last write did
}

func newMover() *mover {
	m := &mover{cancelled: make(chan string, 10), failed: make(chan error, 1)}
	m.s = &events.Stream{Passes: true, Grant: func(int64) {}, Cancel: func(why string) { m.cancelled <- why }}
	return m
}

// move moves most bytes.
func (m *mover) move(most int64) {
	part := make([]byte, partBytes)
	for m.written.Load() < most {
		for i := range part {
			part[i] = byte(m.written.Load()>>10) ^ byte(i)
		}
		if write := m.s.Offer(events.Chunk{Data: part}); write == nil {
			part = make([]byte, partBytes) // it was pushed
		} else if err := write(part); err != nil {
			m.failed <- err
			return
		}
		m.written.Add(partBytes)
	}
	m.s.Push(events.Chunk{End: true})
}

// stands waits until the client takes no more.
func (m *mover) stands(t *testing.T) {
	t.Helper()
	last, same := int64(-1), 0
	require.Eventually(t, func() bool {
		if now := m.written.Load(); now != last {
			last, same = now, 0
		}
		same++
		return last > 0 && same > 30
	}, patience, 5*time.Millisecond)
}

// The goroutine of a pipe writes to the client itself, until the response is over: also when a write waits for the
// client.
func TestPassage(t *testing.T) {
	t.Parallel()
	var access written
	var movers sync.Map
	begin := func(path string) *mover {
		m := newMover()
		movers.Store(path, m)
		return m
	}
	const size = 100 * partBytes
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		got, _ := movers.Load(e.URL[strings.LastIndex(e.URL, "/"):])
		m := got.(*mover)
		most := int64(1 << 40)
		if strings.HasSuffix(e.URL, "/whole") {
			most = size
		}
		go m.move(most)
		return &events.Reply{Status: 200, Stream: m.s}
	}, func(g *Gateway) { g.log = zerolog.New(&access) })
	ask := func(path string) *line {
		l := openLine(t, addr)
		l.say("GET " + path + " HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n")
		return l
	}

	begin("/whole")
	l := ask("/whole")
	r, err := http.ReadResponse(l.in, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Len(t, body, size)
	for at := 0; at < size; at += partBytes {
		part := bytes.Repeat([]byte{0}, partBytes)
		for i := range part {
			part[i] = byte(at>>10) ^ byte(i)
		}
		require.True(t, bytes.Equal(part, body[at:at+partBytes]), "part %d", at/partBytes)
	}
	begin("/whole")
	l.say("GET /whole HTTP/1.1\r\nHost: w--acme.w.test\r\n\r\n")
	require.Equal(t, 200, l.hears().StatusCode, "the connection can be used again")

	m := begin("/fails")
	ask("/fails")
	m.stands(t)
	m.s.Push(events.Chunk{Failure: events.Fail(events.ReasonTimeout, "too long")})
	require.Error(t, <-m.failed)
	require.Empty(t, m.cancelled)
	logs := func() string { return strings.Join(access.take(), "") }
	require.Eventually(t, func() bool { return strings.Contains(logs(), `"broken":"timeout"`) }, patience,
		time.Millisecond)

	m = begin("/gone")
	l = ask("/gone")
	m.stands(t)
	require.NoError(t, l.Close())
	require.Error(t, <-m.failed)
	require.Equal(t, clientGone, <-m.cancelled)
	require.Eventually(t, func() bool {
		text := logs()
		require.NotContains(t, text, "broken")
		return strings.Contains(text, "/gone")
	}, patience, time.Millisecond)
}

// Parts that are not given back, because JavaScript reads them, are larger when more has come. They are charged while
// they wait for the client.
func TestLargerParts(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	largest, sum := make(chan int, 1), make(chan int, 1)
	var g *Gateway
	_, addr := open(t, domain, func(e *lifecycle.Delivery) *events.Reply {
		most, all := 0, 0
		for i := 0; ; i++ {
			part, err := e.Parts.Read(t.Context(), i)
			if err != nil {
				break
			}
			most, all = max(most, len(part)), all+len(part)
		}
		largest <- most
		sum <- all
		return &events.Reply{Status: 200}
	}, func(of *Gateway) { g = of })
	l := openLine(t, addr)
	l.say("POST / HTTP/1.1\r\nHost: w--acme.w.test\r\nContent-Length: 8388608\r\n\r\n" + strings.Repeat("0123456789abcdef", size/16))
	require.Equal(t, 200, l.hears().StatusCode)
	require.Greater(t, <-largest, partBytes)
	require.Equal(t, size, <-sum)
	require.Eventually(t, func() bool {
		g.owners.mu.Lock()
		defer g.owners.mu.Unlock()
		return g.owners.used == 0
	}, patience, time.Millisecond)
}
