package cells

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// lie is something that no cell sends which works.
type lie struct {
	why   string                         // in the error
	say   func(f *fake, a *wire.Attempt) // a is of a task, unless event says otherwise
	event func(*lifecycle.Delivery)
	queue bool // a is a batch of one
	ended bool // the event has ended before the lie: it does not run again

	banned bool // the lie has the dispatcher refuse the worker for a time
}

// Of what kind an event is that a lie is about.
func fetched(e *lifecycle.Delivery) {
	e.Kind, e.Method, e.URL = events.Fetch, "GET", "http://x/"
}

func streamed(e *lifecycle.Delivery) {
	fetched(e)
	e.Requester = &events.Requester{Credit: 1 << 20}
}

func upgradesInChunks(e *lifecycle.Delivery) {
	streamed(e)
	e.Upgrade = true
}

// numbers sends a frame of numbers.
func numbers(kind wire.Kind, list ...uint64) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) {
		f.say(kind, func(w *wire.Writer) {
			for _, n := range list {
				w.Uint(n)
			}
		})
	}
}

// about sends frames about the attempt: its number, and a truth value.
func about(kind wire.Kind, values ...bool) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		for _, is := range values {
			f.say(kind, func(w *wire.Writer) { w.Uint(a.ID); w.Bool(is) })
		}
	}
}

// workerSays sends frames about a worker.
func workerSays(kind wire.Kind, number uint64, values ...bool) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) {
		for _, is := range values {
			f.say(kind, func(w *wire.Writer) { w.Uint(number); w.Bool(is) })
		}
	}
}

func replies(p events.Reply, socket uint64) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) { f.report(a.ID, lifecycle.Report{Reply: &p}, socket) }
}

func ends(e lifecycle.End) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) { f.report(a.ID, lifecycle.Report{End: &e}, 0) }
}

// all does one after the other.
func all(say ...func(*fake, *wire.Attempt)) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		for _, one := range say {
			one(f, a)
		}
	}
}

func finished(f *fake, a *wire.Attempt) { f.finish(a) }

func chunk(id func(uint64) uint64, c events.Chunk) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		f.say(wire.Chunk, func(w *wire.Writer) { wire.PutChunk(w, id(a.ID), c) })
	}
}

func same(id uint64) uint64 { return id }

// runs sends what a thread runs.
func runs(thread int64, id func(uint64) uint64, cpu time.Duration, worker uint64) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) {
		f.say(wire.Running, func(w *wire.Writer) {
			w.Int(thread)
			w.Uint(id(a.ID))
			w.Duration(cpu)
			w.Uint(worker)
		})
	}
}

// charge has an owner pay; "" = that of the cell. more is behind the fields.
func charge(owner string, cpu time.Duration, more ...uint64) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) {
		of := owner
		if of == "" {
			of = f.owner
		}
		f.say(wire.Charge, func(w *wire.Writer) {
			w.Text(of)
			w.Duration(cpu)
			for _, n := range more {
				w.Uint(n)
			}
		})
	}
}

// logs sends a line of the liar's, or of another one's.
func logs(of, worker string) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) {
		owner := of
		if of == "" {
			owner = f.owner
		}
		text, err := json.Marshal(events.LogLine{Owner: owner, Worker: worker, Text: "text"})
		require.NoError(f.t, err)
		f.say(wire.Log, func(w *wire.Writer) { w.Bytes(text) })
	}
}

func raw(b ...byte) func(*fake, *wire.Attempt) {
	return func(f *fake, _ *wire.Attempt) {
		_, err := f.socket.Write(b)
		require.NoError(f.t, err)
	}
}

// frameOf is a frame as bytes.
func frameOf(kind wire.Kind, fields ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(1+len(fields)))
	return append(append(b, byte(kind)), fields...)
}

// longLine is a frame with a line of output that no run may write.
func longLine() []byte {
	text := make([]byte, mostLine+1)
	return frameOf(wire.Log, append(binary.AppendUvarint(nil, uint64(len(text))), text...)...)
}

// is returns a number that is not the attempt's.
func is(id uint64) func(uint64) uint64 { return func(uint64) uint64 { return id } }

// times is a truth value, said so often.
func times(n int, value bool) (list []bool) {
	for range n {
		list = append(list, value)
	}
	return list
}

// reported sends an end with the attempt's number changed.
func reported(id func(uint64) uint64) func(*fake, *wire.Attempt) {
	return func(f *fake, a *wire.Attempt) { f.report(id(a.ID), lifecycle.Report{End: &lifecycle.End{}}, 0) }
}

// A cell that lies is ended at once, is counted and named, and its attempts run again in the next one. Nobody else
// notices.
func TestLiesEndTheCell(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	count := `let n = 0; export default { async task() { return ++n } }`
	s.classes["shared"], s.classes["quiet"] = "", "quiet"
	for _, owner := range []string{"shared", "quiet"} {
		w := &workers.Worker{Owner: owner, Name: "w", Version: "1-x", Number: 1, Hash: count, Code: count, File: "w.js"}
		w.Mode = workers.Persistent // one context has all events
		s.catalog.Install(workers.Only(w))
	}
	s.play(false)
	s.run("shared", "w", "1")
	s.run("quiet", "w", "1")
	s.play(true)
	told := map[string]map[string]lie{"reports": reports, "bodies": bodies, "threads": threads, "frames": misframed}
	n := 0
	for _, of := range []string{"reports", "bodies", "threads", "frames"} {
		for name, l := range told[of] {
			n++
			t.Run(of+"/"+name, func(t *testing.T) { tell(t, s, l, n) })
		}
	}
	for _, owner := range []string{"shared", "quiet"} {
		reply, _ := s.run(owner, "w", "1")
		require.JSONEq(t, `{"success":true,"data":2}`, reply, "nobody else has lost a context")
	}
}

// tell has a class of its own lie.
func tell(t *testing.T, s *stage, l lie, n int) {
	owner := "liar" + string(rune('a'+n/26)) + string(rune('a'+n%26))
	s.house.mu.Lock()
	s.classes[owner] = owner
	s.house.mu.Unlock()
	s.deploy(owner, echo, func(w *workers.Worker) {
		w.Queue, w.Batch = l.queue, &workers.Batch{MaxSize: 1}
	})
	e := newEvent(events.Task, owner, "1")
	if l.event != nil {
		l.event(e)
	}
	before := s.ends("lie")
	done := s.give(e)
	f := s.cell(t)
	f.owner = owner
	a := f.begin()
	l.say(f, a)
	select {
	case <-f.killed:
	case <-time.After(patience):
		require.Fail(t, "the cell lives on")
	}
	require.Eventually(t, func() bool { return s.ends("lie") == before+1 }, patience, time.Millisecond)
	if !l.ended && !l.banned {
		next := s.cell(t)
		again := next.begin()
		require.Equal(t, a.Event.ID, again.Event.ID)
		next.finish(again)
	}
	if !l.banned {
		s.house.t = t
		_, end := s.wait(done)
		require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	}
	s.mu.Lock()
	require.Equal(t, 1, s.lied[owner+": "+owner], "Config.Caused")
	s.mu.Unlock()
	for line := range bytes.Lines([]byte(s.log.String())) {
		var of struct{ Class, Error, Message string }
		require.NoError(t, json.Unmarshal(line, &of))
		if of.Class == owner {
			require.Contains(t, of.Message, "it may have been broken into")
			require.Contains(t, of.Error, l.why)
			return
		}
	}
	require.Fail(t, "nothing was logged")
}
