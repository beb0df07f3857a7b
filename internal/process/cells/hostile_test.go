package cells

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// gone waits until the broker has killed the cell.
func (f *fake) gone() {
	f.t.Helper()
	select {
	case <-f.killed:
	case <-time.After(patience):
		require.Fail(f.t, "the cell lives on")
	}
}

// A cell whose first frame is not Ready of this release, and nothing else, is not given anything.
func TestCellsThatBeginWrongGetNothing(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(*fake, *wire.Attempt){
		"another release": numbers(wire.Ready, wire.Version+1),
		"another frame":   numbers(wire.Next, 0, 1),
		"a byte too many": numbers(wire.Ready, wire.Version, 0),
		"a byte too few":  numbers(wire.Ready),
		"2 GB":            raw(0, 0, 0, 128),
		"nothing":         func(f *fake, _ *wire.Attempt) { _ = f.socket.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStage(t)
			s.install("alice", "w", echo)
			done := s.submit("alice", "w", "1")
			f := s.cell(t)
			f.await(wire.Hello)
			say(f, nil)
			f.gone()
			for got := range f.frames {
				require.NotEqual(t, wire.Attempts, got.kind)
			}
			next := s.cell(t)
			next.finish(next.begin())
			s.wait(done)
			require.Equal(t, 1, s.ends("start"))
			require.Empty(t, s.lied)
		})
	}
}

// What comes with Ready in one piece is not lost.
func TestCellsMaySpeakAtOnce(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.install("alice", "w", echo)
	done := s.submit("alice", "w", "1")
	f := s.cell(t)
	f.await(wire.Hello)
	next := frameOf(wire.Next, 0, 1)
	_, err := f.socket.Write(append(append(frameOf(wire.Ready, wire.Version), next...), next[:3]...))
	require.NoError(t, err)
	raw(next[3:]...)(f, nil)
	f.finish(f.await(wire.Attempts).attempts[0])
	s.wait(done)
	require.Zero(t, s.ends("lie"))
}

// Goroutines of a cell may still speak of an attempt whose end it has reported. That is no lie.
func TestLateWordsAreNoLies(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.install("alice", "w", echo)
	e := newEvent(events.Fetch, "alice", "1")
	streamed(e)
	done := s.give(e)
	f := s.cell(t)
	a := f.begin()
	f.report(a.ID, lifecycle.Report{Reply: &begun}, 0)
	f.report(a.ID, lifecycle.Report{End: &lifecycle.End{Started: true}}, 0)
	all(chunk(same, dot), about(wire.Away, true), about(wire.Calling, false), runs(0, same, 1, 1), spans("{}"))(f, a)
	var reply *events.Reply
	for reply == nil {
		if got := <-done; got.Reply != nil {
			reply = got.Reply
		}
	}
	var failure *events.Failure
	require.Eventually(t, func() bool {
		for _, c := range reply.Stream.Take() {
			failure = c.Failure
		}
		return failure != nil
	}, patience, time.Millisecond)
	require.Contains(t, failure.Message, "the run ended before its body")
	second := s.submit("alice", "w", "2")
	b := f.await(wire.Attempts).attempts[0]
	spans("{}")(f, b) // nobody keeps its trace
	require.Equal(t, uint32(a.ID), uint32(b.ID), "the index is used again")
	require.NotEqual(t, a.ID, b.ID)
	f.finish(b)
	s.wait(second)
	require.Zero(t, s.ends("lie"))
}

// A reply to a call of a service goes into no message, and may be longer than one.
func TestRepliesOfServicesMayBeLong(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.install("alice", "w", echo)
	e := newEvent(events.Fetch, "alice", "1")
	e.Service = &events.ServiceCall{}
	done := s.give(e)
	f := s.cell(t)
	a := f.begin()
	body := make([]byte, wire.MostBody)
	f.report(a.ID, lifecycle.Report{Reply: &events.Reply{Status: 200, Body: body}, End: &lifecycle.End{Started: true}}, 0)
	_, end := s.wait(done)
	require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	require.Zero(t, s.ends("lie"))
}

// A cell that dies in the middle of a frame has not lied.
func TestCellsThatDieAreNoLiars(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.install("alice", "w", echo)
	done := s.submit("alice", "w", "1")
	f := s.cell(t)
	a := f.begin()
	raw(binary.LittleEndian.AppendUint32(nil, 100)...)(f, a)
	require.NoError(t, f.socket.Close())
	f.gone()
	next := s.cell(t)
	next.finish(next.begin())
	_, end := s.wait(done)
	require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	require.Equal(t, []int{1, 0}, []int{s.ends("died"), s.ends("lie")})
}

// An event in which cells end again and again fails, so that they do not end forever.
func TestAnEventThatEndsCellsFails(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.install("alice", "w", echo)
	done := s.submit("alice", "w", "1")
	for range mostDeaths + 1 {
		f := s.cell(t)
		f.begin()
		f.kill()
	}
	_, end := s.wait(done)
	require.NotNil(t, end.Outcome.Failure)
	require.Equal(t, events.ReasonCrash, end.Outcome.Failure.Reason)
}

// counting counts how often threads ask for attempts.
type counting struct {
	Dispatcher
	asked atomic.Int64
}

func (c *counting) Next(thread, free int) []*lifecycle.Attempt {
	c.asked.Add(1)
	return c.Dispatcher.Next(thread, free)
}

// A cell that is told to end, and does not, is killed. What its class has meanwhile waits for the next one: the broker
// does not ask for it again and again.
func TestCellsThatDoNotEndAreKilled(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(*fake){
		"stays":              func(*fake) {},
		"closes, and stays":  func(f *fake) { _ = f.socket.Close() },
		"asks for more":      func(f *fake) { numbers(wire.Next, 0, 64)(f, nil) },
		"asks without limit": func(f *fake) { repeated(1000, numbers(wire.Next, 1, 64))(f, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStage(t, func(c *Config) { c.IdleAfter = 10 * time.Millisecond })
			s.pools.endWithin = 300 * time.Millisecond
			count := &counting{Dispatcher: s.pools.dispatch}
			s.pools.dispatch = count
			s.install("alice", "w", echo)
			done := s.submit("alice", "w", "1")
			f := s.cell(t)
			f.finish(f.begin())
			s.wait(done)
			f.say(wire.Answer, func(w *wire.Writer) { w.Uint(f.await(wire.Ask).number); w.Text("true") })
			f.await(wire.End)
			how(f)
			done = s.submit("alice", "w", "2")
			next := s.cell(t)
			f.gone()
			next.finish(next.begin())
			_, end := s.wait(done)
			require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
			require.Zero(t, end.Event.Interrupted, "it was never given to the first one")
			require.Less(t, count.asked.Load(), int64(20))
		})
	}
}

// The process ends although its cells do not. What they had is reported as interrupted.
func TestCloseEndsCellsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.pools.endWithin = 100 * time.Millisecond
	s.install("alice", "w", echo)
	e := newEvent(events.Task, "alice", "1")
	s.give(e)
	f := s.cell(t)
	f.begin()
	s.pools.closeCells()
	f.gone()
	s.house.mu.Lock()
	defer s.house.mu.Unlock()
	require.Equal(t, 2, e.Attempt, "its run was interrupted")
}

// A class that waits for room has one cell end, also while the process of that one takes its time.
func TestOneCellMakesRoom(t *testing.T) {
	t.Parallel()
	s := openStage(t, func(c *Config) { c.Most = 2 })
	all := map[string]*fake{}
	for _, owner := range []string{"a", "b", "c"} {
		s.classes[owner] = owner
		s.install(owner, "w", echo)
	}
	for _, owner := range []string{"a", "b"} {
		done := s.submit(owner, "w", "1")
		all[owner] = s.cell(t)
		all[owner].finish(all[owner].begin())
		s.wait(done)
	}
	done := s.submit("c", "w", "1")
	all["a"].await(wire.End)
	require.NoError(t, all["a"].socket.Close()) // its process stays a while
	time.AfterFunc(3*lookForRoom, all["a"].kill)
	f := s.cell(t)
	f.finish(f.begin())
	s.wait(done)
	done = s.submit("b", "w", "2")
	all["b"].finish(all["b"].await(wire.Attempts).attempts[0])
	s.wait(done)
}

// A cell that sends frames without end, each of which is allowed, ends: they cost the broker its time.
func TestCellsThatFloodEnd(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	s.pools.frameRate = 1 // a machine that is busy sends few
	s.install("alice", "w", echo)
	done := s.submit("alice", "w", "1")
	f := s.cell(t)
	a := f.begin()
	for range 2 * frameBurst {
		select {
		case <-f.killed:
		default:
			runs(0, same, time.Millisecond, a.Worker)(f, a)
			continue
		}
		break
	}
	f.gone()
	next := s.cell(t)
	next.finish(next.begin())
	s.wait(done)
	require.Equal(t, 1, s.ends("lie"))
}
