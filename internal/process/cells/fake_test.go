package cells

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// fake is a cell that the test plays: it says what the test wants. Its process is nothing but its sockets.
type fake struct {
	t      testing.TB
	owner  string // of the event that it was started for
	socket *net.UnixConn
	calls  net.Conn
	conn   *wire.Conn
	frames chan frame
	killed chan struct{}
	exited chan struct{} // is closed by the test, or by Kill
	kill   func()
	memory atomic.Bool // whether it ends because of memory
}

// frame is one that came from the broker.
type frame struct {
	kind     wire.Kind
	number   uint64 // the first one that it has
	text     string
	attempts []*wire.Attempt
}

func newFake(t testing.TB) (*fake, *Process) {
	ours, file := pair(t)
	theirs, err := net.FileConn(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	calls, file := pair(t)
	callsEnd, err := net.FileConn(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	f := &fake{t: t, socket: theirs.(*net.UnixConn), calls: callsEnd, frames: make(chan frame, 1<<16),
		killed: make(chan struct{}), exited: make(chan struct{})}
	f.conn = wire.NewConn(f.socket, 1<<30, 1<<30)
	f.kill = sync.OnceFunc(func() {
		close(f.killed)
		close(f.exited)
		_, _ = f.socket.Close(), callsEnd.Close()
	})
	var group sync.WaitGroup
	group.Go(func() {
		_ = f.conn.Receive(f.take, func() {})
		close(f.frames)
	})
	t.Cleanup(func() {
		f.kill()
		group.Wait()
	})
	return f, &Process{
		Events: ours, Calls: calls,
		Kill: f.kill,
		Wait: func() Ending {
			<-f.exited
			return Ending{Why: "it was a fake", Memory: f.memory.Load()}
		},
	}
}

// take reads a frame of the broker.
func (f *fake) take(kind wire.Kind, r *wire.Reader) error {
	got := frame{kind: kind}
	switch kind {
	case wire.Hello:
		got.text = r.Text()
	case wire.Policy:
		_, got.text = r.Text(), r.Text()
	case wire.Worker:
		got.number, got.text = r.Uint(), r.Text()
	case wire.Secrets:
		got.number, got.text = r.Uint(), r.Text()+strings.Join(r.Texts(), " ")
	case wire.Attempts:
		got.number = r.Uint()
		for range r.Uint() {
			got.attempts = append(got.attempts, wire.ReadAttempt(r))
		}
	case wire.Grant:
		_, got.number = r.Uint(), uint64(r.Int())
	case wire.Ask, wire.Cancel:
		got.number, got.text = r.Uint(), r.Text()
	case wire.Serve, wire.CloseContexts:
		got.number, _ = r.Uint(), r.Uint()
	case wire.Retire, wire.Renew, wire.Reset:
		got.text = r.Text() + "/" + r.Text()
	case wire.End:
	default:
		got.number = r.Uint()
	}
	if r.Err() == nil {
		f.frames <- got
	}
	return r.Err()
}

// await returns the next frame of a kind.
func (f *fake) await(kind wire.Kind) frame {
	f.t.Helper()
	for {
		select {
		case got, ok := <-f.frames:
			require.True(f.t, ok, "the broker has gone before it sent a frame of kind %d", kind)
			if got.kind == kind {
				return got
			}
		case <-time.After(patience):
			require.Failf(f.t, "no frame", "of kind %d", kind)
		}
	}
}

// say sends a frame.
func (f *fake) say(kind wire.Kind, put func(*wire.Writer)) {
	w := f.conn.Begin(kind)
	if put != nil {
		put(w)
	}
	f.conn.End()
	f.conn.Flush()
}

func (f *fake) ready() {
	f.await(wire.Hello)
	f.say(wire.Ready, func(w *wire.Writer) { w.Uint(wire.Version) })
}

// begin says that it is ready, and returns the first attempt that it gets.
func (f *fake) begin() *wire.Attempt {
	f.t.Helper()
	f.ready()
	return f.await(wire.Attempts).attempts[0]
}

func (f *fake) report(id uint64, rep lifecycle.Report, socket uint64) {
	f.say(wire.Report, func(w *wire.Writer) { wire.PutReport(w, id, &rep, socket) })
}

// finish ends an attempt as a cell that works does.
func (f *fake) finish(a *wire.Attempt) {
	rep := lifecycle.Report{End: &lifecycle.End{Started: true, CPU: 1, RetryDelay: -1}}
	if a.Batch == nil {
		rep.Reply = &events.Reply{Body: []byte("true")}
		if a.Event.Kind == events.Fetch {
			rep.Reply.Status = 200
		}
	}
	f.report(a.ID, rep, 0)
}

// stage is a house whose cells of some classes are fakes.
type stage struct {
	*house
	fakes chan *fake
	log   *safeBuffer

	mu      sync.Mutex
	playing bool           // the cells that are started now are fakes
	started int            // others
	lied    map[string]int // by class and owners
}

// safeBuffer is a bytes.Buffer for any goroutine.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func openStage(t testing.TB, change ...func(*Config)) *stage {
	t.Helper()
	s := &stage{fakes: make(chan *fake, 100), log: &safeBuffer{}, lied: map[string]int{}, playing: true}
	s.house = openHouse(t, append([]func(*Config){func(c *Config) {
		start := c.Start
		c.Start = func(ctx context.Context) (*Process, error) {
			s.mu.Lock()
			playing := s.playing
			if !playing {
				s.started++
			}
			s.mu.Unlock()
			if !playing {
				return start(ctx)
			}
			f, p := newFake(t)
			s.fakes <- f
			return p, nil
		}
		c.Log = zerolog.New(s.log)
		c.Caused = func(e End) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lied[e.Class+": "+strings.Join(e.Owners, " ")]++
		}
	}}, change...)...)
	return s
}

// play says whether the cells that start from now on are fakes.
func (s *stage) play(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.playing = is
}

// cell returns the fake that was started next.
func (s *stage) cell(t testing.TB) *fake {
	t.Helper()
	select {
	case f := <-s.fakes:
		f.t = t
		return f
	case <-time.After(patience):
		require.Fail(t, "no cell was started")
		return nil
	}
}

// ends is how many cells ended in a way.
func (s *stage) ends(how string) int {
	m := s.pools.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.ends[how])
}

// give submits an event that the test has made.
func (h *house) give(e *lifecycle.Delivery) chan lifecycle.Settlement {
	done := make(chan lifecycle.Settlement, 1000)
	h.mu.Lock()
	h.waiting[e] = done
	h.mu.Unlock()
	h.dispatch.Submit([]*lifecycle.Delivery{e})
	return done
}

// newEvent makes an event of a kind.
func newEvent(kind events.Kind, owner, id string) *lifecycle.Delivery {
	e := &lifecycle.Delivery{Event: events.Event{Kind: kind, Owner: owner, Worker: "w", ID: id, ReplyTo: "somewhere",
		Body: []byte(`"x"`), Stored: time.Now()}, Runs: events.FirstRun}
	if kind == events.Fetch {
		e.Method, e.URL = "GET", "http://x/"
	}
	return e
}
