package wire

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// seeds adds messages of a kind that a side really sends, and each cut in the middle.
func seeds(f *testing.F, put func(*Writer)) {
	f.Helper()
	var w Writer
	put(&w)
	f.Add(w.b)
	f.Add(w.b[:len(w.b)/2])
	f.Add(append(bytes.Clone(w.b), 0))
}

// sizeOf is how many bytes a message has that it names: texts, bytes and lists. It is at most a multiple of what came.
func sizeOf(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += sizeOf(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			n += 64 + sizeOf(key) + sizeOf(v.MapIndex(key))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return int(v.Type().Elem().Size()) + sizeOf(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += sizeOf(v.Field(i))
		}
	}
	return n
}

// sound requires that what was read has no more memory than its bytes are worth.
func sound(t *testing.T, b []byte, v any) {
	t.Helper()
	// A byte may be an event of a batch, with all its fields, or an empty text of a list.
	if got, most := sizeOf(reflect.ValueOf(v)), 64<<10+600*len(b); got > most {
		t.Fatalf("%d bytes became %d: at most %d", len(b), got, most)
	}
}

func FuzzAttempt(f *testing.F) {
	one := &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, ID: "1", Body: []byte("body"),
		Request: events.Request{Method: "GET", URL: "http://x/", HTTPHeaders: []string{"a", "b"}}}, Runs: events.FirstRun,
		Requester: &events.Requester{Credit: 5}, Upgrade: true}
	task := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, ID: "2", Header: events.Header{"X": {"1", "2"}},
		Parts: &events.Parts{N: 1}}, Runs: events.FirstRun, Service: &events.ServiceCall{Method: "m"}}
	seeds(f, func(w *Writer) { PutAttempt(w, 1, 2, &lifecycle.Attempt{Event: one, Number: 1, Own: true}) })
	seeds(f, func(w *Writer) {
		PutAttempt(w, 1<<32, 2, &lifecycle.Attempt{Event: task, Batch: []*lifecycle.Delivery{task, task, one},
			Halt: &events.Signal{}, Trace: noTrace{events.TraceContext{State: "x"}}})
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		a := ReadAttempt(r)
		sound(t, b, a)
		if r.Done() != nil {
			return
		}
		if a.Traced {
			a.Trace = noTrace{a.Context}
		}
		var w Writer
		PutAttempt(&w, a.ID, a.Worker, &a.Attempt)
		again := ReadAttempt(NewReader(w.b))
		again.Trace = a.Trace
		if !reflect.DeepEqual(visible(a), visible(again)) {
			t.Fatalf("%+v\n%+v", visible(a), visible(again))
		}
	})
}

// visible is an attempt without headers that no handler may see: PutAttempt leaves them out.
func visible(a *Attempt) *Attempt {
	c := &Attempt{ID: a.ID, Worker: a.Worker, Attempt: a.Attempt, Traced: a.Traced, Context: a.Context}
	all := []*lifecycle.Delivery{a.Event}
	if a.Batch != nil {
		all = a.Batch
	}
	c.Batch = nil
	for _, e := range all {
		one := *e
		one.Header = nil
		e.UserHeaders(func(name, value string) {
			if one.Header == nil {
				one.Header = events.Header{}
			}
			one.Header[name] = append(one.Header[name], value)
		})
		c.Batch = append(c.Batch, &one)
	}
	c.Event = nil
	return c
}

func FuzzReport(f *testing.F) {
	failure := events.Fail(events.ReasonException, "why")
	for _, rep := range []lifecycle.Report{
		{Reply: &events.Reply{Status: 200, Headers: []string{"content-type", "text/plain"}, Body: []byte("body")}},
		{Reply: &events.Reply{Status: 200, StatusText: "OK", Stream: &events.Stream{}}},
		{Reply: &events.Reply{Status: 101, Socket: &events.Socket{}}, End: &lifecycle.End{Started: true}},
		{Reply: &events.Reply{Dropped: 5, Failure: failure}},
		{End: &lifecycle.End{Failure: failure, Broken: failure, Started: true, CPU: 5, RetryDelay: -1}},
		{End: &lifecycle.End{Retry: true, Items: []lifecycle.Item{{Decision: lifecycle.Acked},
			{Decision: lifecycle.Again, Delay: 7}, {Decision: lifecycle.Failed, Failure: failure}}}},
	} {
		seeds(f, func(w *Writer) { PutReport(w, 1<<32, &rep, 3) })
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		s := ReadReport(r)
		sound(t, b, s)
		if r.Done() != nil {
			return
		}
		rep := lifecycle.Report{Reply: s.Reply, End: s.End}
		if s.Stream {
			s.Reply.Stream = &events.Stream{}
		}
		if s.Socket != 0 {
			s.Reply.Socket = &events.Socket{}
		}
		var w Writer
		PutReport(&w, s.ID, &rep, s.Socket)
		if s.Reply != nil {
			s.Reply.Stream, s.Reply.Socket = nil, nil
		}
		if s.End != nil && len(s.End.Items) == 0 {
			s.End.Items = nil
		}
		if again := ReadReport(NewReader(w.b)); !reflect.DeepEqual(s, again) {
			t.Fatalf("%+v\n%+v", s, again)
		}
	})
}

func FuzzChunk(f *testing.F) {
	for _, c := range []events.Chunk{{Data: []byte("data")}, {End: true}, {Waits: true},
		{Failure: events.Fail(events.ReasonException, "why")}} {
		seeds(f, func(w *Writer) { PutChunk(w, 1<<32, c) })
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		id, c := ReadChunk(r)
		sound(t, b, c)
		if r.Done() != nil {
			return
		}
		var w Writer
		PutChunk(&w, id, c)
		if again, d := ReadChunk(NewReader(w.b)); id != again || !reflect.DeepEqual(c, d) {
			t.Fatalf("%+v\n%+v", c, d)
		}
	})
}

// FuzzFrames gives bytes to a Conn in pieces: what it takes from them does not depend on the pieces.
func FuzzFrames(f *testing.F) {
	var w Writer
	for _, n := range []uint32{1, 5, 0, 100, 1 << 31} {
		w.b = append(binary.LittleEndian.AppendUint32(w.b, n), "frames"...)
		f.Add(bytes.Clone(w.b), uint16(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		const most = 64
		c := &Conn{most: most}
		var whole, inPieces [][]byte
		note := func(to *[][]byte) func(Kind, *Reader) error {
			return func(kind Kind, r *Reader) error {
				if len(r.b) > most-1 {
					t.Fatalf("a frame of %d bytes", len(r.b))
				}
				*to = append(*to, append([]byte{byte(kind)}, r.b...))
				r.b = nil
				return nil
			}
		}
		_, wholeErr := c.frames(b, note(&whole))
		buffer, filled := make([]byte, 16), 0
		var err error
		for rest := b; len(rest) > 0 && err == nil; {
			n := copy(buffer[filled:], rest[:min(len(rest), int(piece)+1)])
			rest, filled = rest[n:], filled+n
			var used int
			used, err = c.frames(buffer[:filled], note(&inPieces))
			filled = copy(buffer, buffer[used:filled])
			buffer = c.resize(buffer, filled)
			if len(buffer) > max(keptBytes, 4*(most+headBytes)) {
				t.Fatalf("a buffer of %d bytes", len(buffer))
			}
		}
		require.Equal(t, whole, inPieces)
		require.Equal(t, wholeErr, err)
	})
}
