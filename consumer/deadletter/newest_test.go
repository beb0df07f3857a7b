package deadletter_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

// store stores a letter of acme or of another owner, or what is no letter, and returns its number.
func (b *bed) store(owner, message string, body []byte, letter bool) uint64 {
	b.t.Helper()
	e := jsapitest.Task(uint64(time.Now().UnixNano()), "e", at)
	e.Owner, e.Body = owner, body
	m := &nats.Msg{Subject: jsapitest.Prefix.Dead(e, events.ReasonCPU), Data: body}
	if letter {
		d := events.NewDeadLetter(e, events.NewFailure(events.ReasonCPU, message, ""), "1-a", "node", 3, at)
		m.Header = nats.Header(d.Encode())
	}
	ack, err := b.JS.PublishMsg(b.t.Context(), m)
	require.NoError(b.t, err)
	return ack.Sequence
}

// numbers returns the numbers of a list.
func numbers(t require.TestingT, list iter.Seq2[*events.DeadLetter, error]) (all []uint64) {
	for d, err := range list {
		if err != nil {
			require.ErrorIs(t, err, deadletter.ErrUndecodable)
		}
		all = append(all, d.Seq)
	}
	return all
}

// pages reads windows, each by a list of its own that goes on where the one before ended. It returns the numbers, and
// how much was read.
func pages(t require.TestingT, f deadletter.Filter,
	list func(f deadletter.Filter, before uint64) iter.Seq2[deadletter.Window, error]) (all []uint64, read int) {
	before, limit := uint64(0), f.Limit
	for {
		more := false
		for w, err := range list(f, before) {
			require.NoError(t, err)
			for _, l := range w.Letters {
				require.Equal(t, l.Err == nil, l.Letter.Owner != "")
				all = append(all, l.Letter.Seq)
			}
			before, read, more = w.From, read+w.Read, true
			break
		}
		if f.Limit = limit - len(all); !more || limit > 0 && f.Limit <= 0 {
			return all, read
		}
		if limit == 0 {
			f.Limit = 0
		}
	}
}

// The newest are those of List, the other way round: with gaps, filters and limits, in windows of any size, at once and
// page by page.
func TestNewestAreTheListReversed(t *testing.T) {
	t.Parallel()
	b := open(t)
	s, err := b.JS.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	rapid.Check(t, func(r *rapid.T) {
		require.NoError(r, s.Purge(t.Context()))
		var stored []uint64
		for range rapid.IntRange(0, 30).Draw(r, "letters") {
			one := b.store(rapid.SampledFrom([]string{"acme", "acme", "beta"}).Draw(r, "owner"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(r, "message"),
				make([]byte, rapid.SampledFrom([]int{0, 10, 300}).Draw(r, "body")), rapid.IntRange(0, 9).Draw(r, "none") > 0)
			if stored = append(stored, one); rapid.IntRange(0, 3).Draw(r, "gap") == 0 {
				gone := rapid.SampledFrom(stored).Draw(r, "gone")
				stored = slices.DeleteFunc(stored, func(n uint64) bool { return n == gone })
				require.NoError(r, s.DeleteMsg(t.Context(), gone))
			}
		}
		f := deadletter.Filter{Owner: rapid.SampledFrom([]string{"", "", "acme", "beta", "none"}).Draw(r, "of"),
			Text: rapid.SampledFrom([]string{"", "X"}).Draw(r, "text")}
		if len(stored) > 0 && rapid.Bool().Draw(r, "after") {
			f.After = rapid.Uint64Range(stored[0]-1, stored[len(stored)-1]).Draw(r, "after number")
		}
		want := numbers(r, b.List(t.Context(), f))
		slices.Reverse(want)
		f.Limit = rapid.IntRange(0, 12).Draw(r, "limit")
		if f.Limit > 0 {
			want = want[:min(len(want), f.Limit)]
		}
		window, scan, letters, bytes := rapid.Uint64Range(1, 40).Draw(r, "window"), rapid.Uint64Range(1, 60).
			Draw(r, "scan"), rapid.IntRange(1, 12).Draw(r, "letters of a window"), rapid.IntRange(1, 4000).Draw(r, "bytes")
		list := func(f deadletter.Filter, before uint64) iter.Seq2[deadletter.Window, error] {
			return b.NewestBy(t.Context(), f, before, window, scan, letters, bytes)
		}
		var got []uint64
		for w, err := range list(f, 0) {
			require.NoError(r, err)
			for _, l := range w.Letters {
				got = append(got, l.Letter.Seq)
				require.GreaterOrEqual(r, l.Letter.Seq, w.From)
			}
		}
		require.Equal(r, want, got)
		got, _ = pages(r, f, list)
		require.Equal(r, want, got)
	})
}

// What is read grows with the letters that are there, and not with numbers that nothing has. A page of the newest reads
// no more than it shows, if nothing is in between.
func TestNewestReadLittle(t *testing.T) {
	t.Parallel()
	b := open(t)
	s, err := b.JS.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	b.store("beta", "first", nil, true)
	const n = 3000
	for i := range n {
		b.store("acme", fmt.Sprint("letter ", i), nil, true)
	}
	read := func(f deadletter.Filter) (all, read int) {
		got, read := pages(t, f, func(f deadletter.Filter, before uint64) iter.Seq2[deadletter.Window, error] {
			return b.Newest(t.Context(), f, before)
		})
		return len(got), read
	}
	of := func(all, read int) []int { return []int{all, read} }
	require.Equal(t, []int{100, 100}, of(read(deadletter.Filter{Limit: 100})))
	require.Equal(t, []int{n + 1, n + 1}, of(read(deadletter.Filter{})))
	require.Equal(t, []int{1, 1}, of(read(deadletter.Filter{Owner: "beta"})))
	all, cost := read(deadletter.Filter{Text: "letter 7", Limit: 20})
	require.Equal(t, 20, all)
	require.Less(t, cost, 3*n/2)

	// Almost all are gone, and the rest are far apart.
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(jsapitest.Prefix.DeadOwner("acme")),
		jetstream.WithPurgeKeep(50)))
	all, cost = read(deadletter.Filter{})
	require.Equal(t, 51, all)
	require.Less(t, cost, 3*51)
}

// Letters with long bodies come in small windows.
func TestNewestKeepFewBytes(t *testing.T) {
	t.Parallel()
	b := open(t)
	const n, size = 30, 400_000
	for range n {
		b.store("acme", "x", []byte(strings.Repeat("b", size)), true)
	}
	all, read := 0, 0
	for w, err := range b.NewestBy(t.Context(), deadletter.Filter{}, 0, 256, 128, 512, 4*size) {
		require.NoError(t, err)
		require.Less(t, len(w.Letters), 4)
		all, read = all+len(w.Letters), read+w.Read
	}
	require.Equal(t, n, all)
	require.Less(t, read, 2*n)
}
