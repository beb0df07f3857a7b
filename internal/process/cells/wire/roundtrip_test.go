package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// sent is a delivery as the cell has it: what does not travel is gone.
func sent(e *lifecycle.Delivery) *lifecycle.Delivery {
	c := *e
	if len(c.Body) == 0 {
		c.Body = nil
	}
	return &c
}

func TestAttemptsArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id, worker, a := rapid.Uint64().Draw(t, "id"), rapid.Uint64().Draw(t, "worker"), someAttempt(t)
		var w Writer
		PutAttempt(&w, id, worker, a)
		r := NewReader(w.b)
		got := ReadAttempt(r)
		require.NoError(t, r.Done())
		require.Equal(t, []uint64{id, worker}, []uint64{got.ID, got.Worker})
		require.Equal(t, []any{a.Number, a.Own, a.Halt != nil}, []any{got.Number, got.Own, got.Halt != nil})
		require.True(t, a.Start.Equal(got.Start))
		require.Equal(t, a.Trace != nil, got.Traced)
		if a.Trace != nil {
			require.Equal(t, a.Trace.Context(), got.Context)
		}
		require.Len(t, got.Batch, len(a.Batch))
		require.Equal(t, sent(a.Event), got.Event)
		for i, e := range a.Batch {
			require.Equal(t, sent(e), got.Batch[i])
		}
		if a.Batch != nil {
			require.Same(t, got.Batch[0], got.Event)
		}
	})
}

// An event that has a Halt of its own is one that may be told to end.
func TestHaltOfAnEventArrives(t *testing.T) {
	t.Parallel()
	var w Writer
	PutAttempt(&w, 1, 1, &lifecycle.Attempt{Event: &lifecycle.Delivery{Halt: &events.Signal{}}})
	require.NotNil(t, ReadAttempt(NewReader(w.b)).Halt)
}

func TestReportsArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint64().Draw(t, "id")
		rep, socket := someReport(t)
		var w Writer
		PutReport(&w, id, &rep, socket)
		r := NewReader(w.b)
		got := ReadReport(r)
		require.NoError(t, r.Done())
		require.Equal(t, id, got.ID)
		require.Equal(t, socket, got.Socket)
		require.Equal(t, rep.End, got.End)
		if rep.Reply == nil {
			require.Nil(t, got.Reply)
			return
		}
		require.Equal(t, rep.Reply.Stream != nil, got.Stream)
		want := *rep.Reply
		want.Stream, want.Socket = nil, nil // the broker makes its own
		if len(want.Body) == 0 {
			want.Body = nil
		}
		require.Equal(t, &want, got.Reply)
	})
}

func TestChunksArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint64().Draw(t, "id")
		c := events.Chunk{Data: someBytes().Draw(t, "data"), End: rapid.Bool().Draw(t, "end"),
			Waits: rapid.Bool().Draw(t, "waits"), Failure: someFailure(t, "no failure")}
		var w Writer
		PutChunk(&w, id, c)
		r := NewReader(w.b)
		gotID, got := ReadChunk(r)
		require.NoError(t, r.Done())
		if len(c.Data) == 0 {
			c.Data = nil
		}
		require.Equal(t, id, gotID)
		require.Equal(t, c, got)
	})
}

// What a side may not have meant, it does not get: a message that was cut anywhere is an error, and so is one with
// bytes behind its fields.
func TestCutMessagesAreRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w Writer
		var read func(*Reader)
		switch rapid.IntRange(0, 2).Draw(t, "message") {
		case 0:
			PutAttempt(&w, 1, 1, someAttempt(t))
			read = func(r *Reader) { ReadAttempt(r) }
		case 1:
			rep, socket := someReport(t)
			PutReport(&w, 1, &rep, socket)
			read = func(r *Reader) { ReadReport(r) }
		default:
			PutChunk(&w, 1, events.Chunk{Data: someBytes().Draw(t, "data"), Failure: someFailure(t, "no failure")})
			read = func(r *Reader) { ReadChunk(r) }
		}
		r := NewReader(w.b[:rapid.IntRange(0, len(w.b)-1).Draw(t, "cut")])
		read(r)
		require.Error(t, r.Done())
		r = NewReader(append(w.b, 0))
		read(r)
		require.ErrorContains(t, r.Done(), "1 bytes too many")
	})
}
