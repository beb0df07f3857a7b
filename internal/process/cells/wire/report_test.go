package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// forge returns the error of reading a report that only a cell that was broken into sends.
func forge(t *testing.T, rep lifecycle.Report, socket uint64) error {
	t.Helper()
	var w Writer
	PutReport(&w, 1, &rep, socket)
	r := NewReader(w.b)
	ReadReport(r)
	return r.Done()
}

// The texts and numbers of a reply become those of HTTP and NATS messages. None may be what those cannot have.
func TestRepliesThatNoHandlerMakesAreRefused(t *testing.T) {
	t.Parallel()
	failure := &events.Failure{Reason: "boredom"}
	many := make([]string, maxHeaders+2)
	for i := range many {
		many[i] = "x"
	}
	for why, p := range map[string]*events.Reply{
		"a number is 600: it is 0 to 599":                    {Status: 600},
		"a number is -1: it is 0 to 599":                     {Status: -1},
		"the status of a reply is 99: it is 200 to 599":      {Status: 99},
		"the status of a reply is 101, and only a WebSocket": {Status: 101},
		"a name without a value":                             {Headers: []string{"a"}},
		`the header "a b"`:                                   {Headers: []string{"a b", "x"}},
		`the header ""`:                                      {Headers: []string{"", "x"}},
		`the header "a\r\n"`:                                 {Headers: []string{"a\r\n", "x"}},
		"4098 names and values of headers: at most 4096":     {Headers: many},
		"a number is -5: it is 0 to":                         {Dropped: -5},
		`reason "boredom": it is one of`:                     {Failure: failure},
	} {
		require.ErrorContains(t, forge(t, lifecycle.Report{Reply: p}, 0), why)
	}
	socket := &events.Socket{}
	err := forge(t, lifecycle.Report{Reply: &events.Reply{Status: 200, Socket: socket}}, 1)
	require.ErrorContains(t, err, "only a WebSocket")
	err = forge(t, lifecycle.Report{Reply: &events.Reply{Status: 101, Socket: socket}}, 0)
	require.ErrorContains(t, err, "has no number")
	for _, end := range ends {
		for _, fields := range [][]string{{"OK" + string(end)}, {"OK", "a", "b", "c", string(end) + "x: y"}} {
			var w Writer
			w.Uint(1)
			w.Uint(hasReply)
			w.Uint(0)
			w.Int(200)
			w.Text(fields[0])
			w.Texts(fields[1:])
			w.Bytes(nil)
			w.Int(0)
			r := NewReader(w.b)
			ReadReport(r)
			require.Error(t, r.Done())
			require.NotContains(t, r.Done().Error(), "short")
		}
	}
}

// What JavaScript may make of a reply, and what a server may answer that it asks, is never refused.
func TestOddRepliesArrive(t *testing.T) {
	t.Parallel()
	var w Writer
	PutReport(&w, 1, &lifecycle.Report{Reply: &events.Reply{Status: 599, StatusText: "\x80 ok\x01\r\n",
		Headers: []string{"set-cookie", "a=b; \xff\t\x7f", "x", "\x00a\nb"}}}, 0)
	r := NewReader(w.b)
	p := ReadReport(r).Reply
	require.NoError(t, r.Done())
	require.Equal(t, "\x80 ok\x01  ", p.StatusText)
	require.Equal(t, []string{"set-cookie", "a=b; \xff\t\x7f", "x", " a b"}, p.Headers)
}

func TestEndsThatNoRunHasAreRefused(t *testing.T) {
	t.Parallel()
	failure := events.Fail(events.ReasonException, "why")
	item := func(it lifecycle.Item) *lifecycle.End { return &lifecycle.End{Items: []lifecycle.Item{it}} }
	for why, e := range map[string]*lifecycle.End{
		"decision 4":  item(lifecycle.Item{Decision: 4}),
		"decision 1":  item(lifecycle.Item{Decision: lifecycle.Acked, Failure: failure}),
		"decision 3":  item(lifecycle.Item{Decision: lifecycle.Failed}),
		"101 events":  {Items: make([]lifecycle.Item, workers.MaxBatch.MaxSize+1)},
		`reason "no"`: {Broken: &events.Failure{Reason: "no"}},
	} {
		require.ErrorContains(t, forge(t, lifecycle.Report{End: e}, 0), why)
	}
	for i, times := range [][2]int64{{int64(maxTime) + 1, 0}, {0, int64(maxTime) + 1}} {
		var w Writer
		w.Uint(1)
		w.Uint(hasEnd)
		w.Uint(0)
		w.Int(times[0])
		w.Int(times[1])
		r := NewReader(w.b)
		ReadReport(r)
		require.ErrorContains(t, r.Done(), "a number is 34560000000000001", i)
	}
	for why, fields := range map[string][]uint64{
		"a report has a reply or an end":            {1, 0},
		"and nothing else":                          {1, 4},
		"a report has the flags 0x1, of which":      {1, hasEnd, hasReply},
		"a report has the flags 0x100000, of which": {1, hasReply, 1 << 20},
	} {
		var w Writer
		for _, n := range fields {
			w.Uint(n)
		}
		r := NewReader(w.b)
		ReadReport(r)
		require.ErrorContains(t, r.Done(), why)
	}
}

// Times of an end are within a bound, whatever JavaScript said: what a cell that works sends is never refused.
func TestTimesOfEndsAreBounded(t *testing.T) {
	t.Parallel()
	var w Writer
	most := time.Duration(1<<63 - 1)
	PutReport(&w, 1, &lifecycle.Report{End: &lifecycle.End{CPU: most, RetryDelay: most,
		Items: []lifecycle.Item{{Decision: lifecycle.Again, Delay: most}}}}, 0)
	r := NewReader(w.b)
	e := ReadReport(r).End
	require.NoError(t, r.Done())
	require.Equal(t, []time.Duration{maxTime, maxTime, maxTime}, []time.Duration{e.CPU, e.RetryDelay, e.Items[0].Delay})
	w = Writer{}
	PutReport(&w, 1, &lifecycle.Report{End: &lifecycle.End{CPU: -5, RetryDelay: -1 << 62}}, 0)
	r = NewReader(w.b)
	e = ReadReport(r).End
	require.NoError(t, r.Done())
	require.Equal(t, []time.Duration{0, -1}, []time.Duration{e.CPU, e.RetryDelay})
}

// A field that is malformed is an error, and all later ones are zero, or the least that they may be.
func TestFieldsThatAreMalformed(t *testing.T) {
	t.Parallel()
	endless := bytes.Repeat([]byte{255}, 11)
	for i, read := range []func(*Reader){
		func(r *Reader) { r.Uint() }, func(r *Reader) { r.Int() }, func(r *Reader) { r.Bytes() },
		func(r *Reader) { r.Texts() }, func(r *Reader) { r.Bool() },
	} {
		for _, b := range [][]byte{nil, endless} {
			r := NewReader(b)
			read(r)
			require.ErrorIs(t, r.Err(), errShort, "%d %v", i, b)
			require.Zero(t, r.Uint())
			require.Equal(t, int64(5), r.Number(5, 9))
			require.Nil(t, r.Texts())
			require.NoError(t, errors.Unwrap(r.Done()), "the first error stands")
		}
	}
	r := NewReader([]byte{2})
	require.False(t, r.Bool())
	require.ErrorIs(t, r.Err(), errShort)
	r = NewReader(binary.AppendUvarint(nil, 1<<60))
	require.Nil(t, r.Texts(), "no memory is made for what has not come")
	require.ErrorIs(t, r.Err(), errShort)
	r = NewReader(binary.AppendVarint(nil, 6))
	require.Zero(t, r.Duration(5))
	require.ErrorContains(t, r.Err(), "a number is 6: it is 0 to 5")
}
