package calls

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// cpu is the CPU time of this process, which is cell and broker at once.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCall is the round trip of a call of a binding that the broker answers at once, with a value of 100 bytes.
// us-cpu/op is the CPU time of both sides.
func BenchmarkCall(b *testing.B) {
	c := newCell(b, nil)
	from := c.start(direct(c.give(greeter()), nil))
	value := make([]byte, 100)
	c.call = func(context.Context, *lifecycle.Call) (lifecycle.Answer, error) {
		return lifecycle.Answer{Texts: []string{""}, Body: value}, nil
	}
	for _, bench := range []struct {
		name   string
		atOnce int
	}{{"alone", 1}, {"64", 64}} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetParallelism(bench.atOnce)
			began := cpu(b)
			one := func() {
				if _, err := c.client.Call(b.Context(), kv(from, "get", nil, "key")); err != nil {
					b.Error(err)
				}
			}
			if bench.atOnce == 1 {
				for b.Loop() {
					one()
				}
			} else {
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						one()
					}
				})
			}
			b.ReportMetric(float64((cpu(b)-began).Microseconds())/float64(b.N), "us-cpu/op")
		})
	}
}

// BenchmarkDial is what a connection of a handler brings through the broker, in pieces of 64 KiB.
func BenchmarkDial(b *testing.B) {
	c := newCell(b, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for data := make([]byte, 64<<10); err == nil; {
				_, err = conn.Write(data)
			}
			_ = conn.Close()
		}
	}()
	conn, err := c.client.Dial(b.Context(), "acme", "tcp", l.Addr().String())
	require.NoError(b, err)
	piece := make([]byte, 64<<10)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		_, err := io.ReadFull(conn, piece)
		require.NoError(b, err)
	}
	require.NoError(b, conn.Close())
}
