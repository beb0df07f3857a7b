package stored_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// All and Scan find what single requests find, in their order, whatever gaps and subjects there are, and wherever they
// begin.
func TestAllFindsEveryMessageOnce(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		name := fmt.Sprint("S", n)
		s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"},
			Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		defer func() { _ = js.DeleteStream(t.Context(), name) }()
		count := rapid.IntRange(0, 150).Draw(t, "messages")
		for i := range count {
			subject := fmt.Sprint(name, ".", rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "subject"))
			data := make([]byte, i%3*rapid.SampledFrom([]int{1, 1, 1, 1, 200_000}).Draw(t, "bytes"))
			if i < count-1 {
				require.NoError(t, nc.Publish(subject, data))
				continue
			}
			ack, err := js.Publish(t.Context(), subject, data) // the stream takes messages in their order
			require.NoError(t, err)
			require.EqualValues(t, count, ack.Sequence)
		}
		for range rapid.IntRange(0, 3).Draw(t, "gaps") {
			if count > 0 {
				from := rapid.IntRange(1, count).Draw(t, "gap")
				for seq := from; seq < min(count, from+rapid.IntRange(1, 60).Draw(t, "length")); seq++ {
					_ = s.DeleteMsg(t.Context(), uint64(seq)) // it may be gone
				}
			}
		}
		subject, from := name+"."+rapid.SampledFrom([]string{"a", "b", "*"}).
			Draw(t, "filter"), uint64(rapid.IntRange(0, count+2).Draw(t, "from"))
		var want, got, scanned []uint64
		for seq := max(1, from); ; seq++ {
			m, err := stored.Get(t.Context(), nc, name, stored.Request{Seq: seq, Next: subject})
			if errors.Is(err, stored.ErrNone) {
				break
			}
			require.NoError(t, err)
			want, seq = append(want, m.Sequence), m.Sequence
		}
		for m, err := range stored.All(t.Context(), nc, name, subject, from) {
			require.NoError(t, err)
			got = append(got, m.Sequence)
		}
		require.Equal(t, want, got)
		for m, err := range stored.Scan(t.Context(), nc, name, subject, from) {
			require.NoError(t, err)
			scanned = append(scanned, m.Sequence)
		}
		require.Equal(t, want, scanned)
		require.Zero(t, consumers(t, s), "a scan leaves no consumer")
	})
	require.Zero(t, nc.NumSubscriptions()-1, "only the library's own") // of requests
}

// A scan of headers that owners may have written asks for few messages at once, and finds all.
func TestHeadersOfOwnersComeFewAtOnce(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"},
		Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	for i := range 300 {
		m := &nats.Msg{Subject: "s", Header: nats.Header{"X": {strings.Repeat("x", i)}}, Data: []byte("body")}
		_, err := js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	requests, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.S.*")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	scan, err := stored.HeadersFrom(t.Context(), nc, "S", 101)
	require.NoError(t, err)
	next := uint64(101)
	for m, err := range scan.Messages(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, next, m.Sequence)
		require.Len(t, m.Header.Get("X"), int(next)-1)
		require.Empty(t, m.Data)
		next++
	}
	require.EqualValues(t, 301, next)
	asked := 0
	for asked <= 200 { // the last word of the server needs one more
		m, err := requests.NextMsg(time.Minute)
		require.NoError(t, err)
		var request struct{ Batch int }
		require.NoError(t, json.Unmarshal(m.Data, &request))
		require.LessOrEqual(t, request.Batch, 64)
		asked += request.Batch
	}
}

func consumers(t require.TestingT, s jetstream.Stream) int {
	info, err := s.Info(context.Background())
	require.NoError(t, err)
	return info.State.Consumers
}

func BenchmarkAll(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	require.NoError(b, err)
	const count = 5000
	for i := range count {
		_, err := js.PublishAsync(fmt.Sprint("s.", i), make([]byte, 300), jetstream.WithStallWait(1<<40))
		require.NoError(b, err)
	}
	<-js.PublishAsyncComplete()
	for name, read := range map[string]func(context.Context, *nats.Conn, string, string, uint64) iter.Seq2[*stored.Message,
		error]{"all": stored.All, "scan": stored.Scan} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range read(b.Context(), nc, "S", "s.>", 1) {
					require.NoError(b, err)
					n++
				}
				require.Equal(b, count, n)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/count, "µs/message")
		})
	}
}
