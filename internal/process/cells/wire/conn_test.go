package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// patience is how long tests wait for a fact on a busy machine.
const patience = 5 * time.Minute

// sockets returns the two ends of a connection.
func sockets(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	ends := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		require.NoError(t, unix.SetNonblock(fd, true))
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		ends[i] = c.(*net.UnixConn)
		t.Cleanup(func() { _ = c.Close() })
	}
	return ends[0], ends[1]
}

// nothing is what Receive calls when nothing is left.
func nothing() {}

// put sends a frame with bytes.
func put(c *Conn, kind Kind, b []byte) {
	c.Begin(kind).Bytes(b)
	c.End()
	c.Flush()
}

func TestFramesOfManyGoroutinesArriveWhole(t *testing.T) {
	t.Parallel()
	const senders, frames = 8, 300
	one, two := sockets(t)
	from, to := NewConn(one, 1<<20, 1<<30), NewConn(two, 1<<20, 1<<30)
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			for i := range frames {
				w := from.Begin(Kind(s + 1))
				w.Uint(uint64(i))
				w.Bytes(bytes.Repeat([]byte{byte(s)}, i*i%5000))
				from.End()
				if i%3 != 0 {
					from.Flush()
				}
			}
			from.Flush()
		})
	}
	next, got, left := map[Kind]uint64{}, 0, 0
	group.Go(func() {
		err := to.Receive(func(kind Kind, r *Reader) error {
			n, b := r.Uint(), r.Bytes()
			require.Equal(t, next[kind], n, "the frames of a goroutine keep their order")
			require.Equal(t, bytes.Repeat([]byte{byte(kind - 1)}, int(n*n%5000)), append([]byte{}, b...))
			next[kind]++
			left++
			if got++; got == senders*frames {
				return io.EOF
			}
			return nil
		}, func() { left = 0 })
		require.ErrorIs(t, err, io.EOF)
	})
	group.Wait()
	require.Equal(t, senders*frames, got)
	require.Positive(t, left, "after is called when nothing is left, and not after an error")
	from.Close()
	to.Close()
}

func TestFramesHaveOneByteToMost(t *testing.T) {
	t.Parallel()
	const most = 1000
	frame := func(size uint32, have int) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, size), make([]byte, have)...)
	}
	for name, tc := range map[string]struct {
		bytes []byte
		why   string
	}{
		"of no byte":               {frame(0, 0), "a frame has 0 bytes: it has 1 to 1000"},
		"one byte too many":        {frame(most+1, 0), "a frame has 1001 bytes: it has 1 to 1000"},
		"2 GB":                     {frame(1<<31, 0), "a frame has 2147483648 bytes: it has 1 to 1000"},
		"4 GB":                     {frame(1<<32-1, 0), "a frame has 4294967295 bytes"},
		"with a byte too many":     {frame(3, 3), "frame of kind 0: the message has 1 bytes too many"},
		"with a byte too few":      {frame(1, 1), "frame of kind 0: the message is too short"},
		"behind one that is right": {append(frame(2, 2), frame(0, 0)...), "a frame has 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := sockets(t)
			_, err := one.Write(tc.bytes)
			require.NoError(t, err)
			err = NewConn(two, most, most).Receive(func(_ Kind, r *Reader) error { r.Bool(); return nil }, nothing)
			require.ErrorContains(t, err, tc.why)
		})
	}
	one, two := sockets(t)
	from, to := NewConn(one, most, 1<<20), NewConn(two, most, 1<<20)
	from.Begin(1)
	from.End()
	put(from, 2, make([]byte, most-3)) // the kind, and two bytes of length
	from.Close()
	var got []Kind
	require.ErrorIs(t, to.Receive(func(kind Kind, r *Reader) error {
		if got = append(got, kind); kind == 2 {
			require.Len(t, r.Bytes(), most-3)
		}
		return nil
	}, nothing), io.EOF)
	require.Equal(t, []Kind{1, 2}, got)
}

// A side that closes in the middle of a frame has sent nothing of it, and that is the end like any other.
func TestACutFrameIsTheEnd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3, 4, 5, 9} {
		one, two := sockets(t)
		_, err := one.Write(append(binary.LittleEndian.AppendUint32(nil, 10), "123456"...)[:n])
		require.NoError(t, err)
		require.NoError(t, one.Close())
		err = NewConn(two, 100, 100).Receive(func(Kind, *Reader) error { return errors.New("a frame") }, nothing)
		require.ErrorIs(t, err, io.EOF, n)
		require.NotContains(t, err.Error(), "a frame")
	}
}

// What comes in single bytes is the same, and memory follows what has come.
func TestFramesMayComeInPieces(t *testing.T) {
	t.Parallel()
	one, two := sockets(t)
	var w Writer
	w.b = append(binary.LittleEndian.AppendUint32(nil, 1+2+300), 7)
	w.Bytes(bytes.Repeat([]byte("abc"), 100))
	to := NewConn(two, 1<<20, 1<<20)
	var group sync.WaitGroup
	group.Go(func() {
		for _, b := range w.b {
			_, err := one.Write([]byte{b})
			require.NoError(t, err)
		}
	})
	done := errors.New("done")
	require.ErrorIs(t, to.Receive(func(kind Kind, r *Reader) error {
		require.Equal(t, Kind(7), kind)
		require.Equal(t, bytes.Repeat([]byte("abc"), 100), r.Bytes())
		return done
	}, nothing), done)
	group.Wait()
}

// Flush does not wait for the other side. One that does not read breaks the Conn when too much waits.
func TestASideThatDoesNotReadBreaksTheConn(t *testing.T) {
	t.Parallel()
	const full = 4 << 20
	one, _ := sockets(t)
	c := NewConn(one, 1<<20, full)
	piece := make([]byte, 64<<10)
	most := 0
	for sent := 0; c.why() == nil; sent += len(piece) {
		require.Less(t, sent, 4*full)
		put(c, 1, piece) // it would hang here if it blocked
		most = max(most, c.Waiting())
	}
	require.ErrorIs(t, c.why(), ErrStuck)
	require.LessOrEqual(t, most, full)
	require.Zero(t, c.Waiting(), "the memory is free")
	require.ErrorIs(t, c.Receive(nil, nothing), ErrStuck)
	put(c, 1, piece) // nothing happens
	require.Zero(t, c.Waiting())
	c.Close()
	require.ErrorIs(t, c.why(), ErrStuck, "the first error stays")
}

// A side that reads slowly gets everything in order: what the socket does not take at once, a goroutine writes.
func TestASideThatReadsLateGetsEverything(t *testing.T) {
	t.Parallel()
	one, two := sockets(t)
	from, to := NewConn(one, 1<<20, 1<<30), NewConn(two, 1<<20, 1<<30)
	const frames = 200
	for i := range frames {
		put(from, Kind(i%200+1), bytes.Repeat([]byte{byte(i)}, 50<<10))
	}
	require.Positive(t, from.Waiting())
	i := 0
	done := errors.New("done")
	require.ErrorIs(t, to.Receive(func(kind Kind, r *Reader) error {
		require.Equal(t, Kind(i+1), kind)
		require.Equal(t, byte(i), r.Bytes()[0])
		if i++; i == frames {
			return done
		}
		return nil
	}, nothing), done)
	from.Close()
}

// Close ends what writes and what receives, and waits for the former. Others may send meanwhile.
func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	for range 20 {
		one, _ := sockets(t)
		c := NewConn(one, 1<<20, 1<<20)
		var group sync.WaitGroup
		began := make(chan struct{})
		group.Go(func() { require.ErrorIs(t, c.Receive(nil, nothing), net.ErrClosed) })
		group.Go(func() {
			for i := range 300 {
				if put(c, 1, make([]byte, 10<<10)); i == 5 {
					close(began)
				}
			}
		})
		<-began
		c.Close()
		c.Close()
		group.Wait()
		require.Zero(t, c.Waiting())
	}
}

// The other side may end while this one sends.
func TestAnEndOfTheOtherSideBreaksTheConn(t *testing.T) {
	t.Parallel()
	one, two := sockets(t)
	c := NewConn(one, 1<<20, 1<<20)
	require.NoError(t, two.Close())
	put(c, 1, []byte("text"))
	require.Eventually(t, func() bool { return c.why() != nil }, patience, time.Millisecond)
	require.ErrorIs(t, c.why(), unix.EPIPE)
	require.Error(t, c.Receive(nil, nothing))
	c.Close()
}

// After an error of its function, Receive goes on with the next frame. Nothing that came with the frame is lost.
func TestReceiveGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	one, two := sockets(t)
	from, to := NewConn(one, 1<<20, 1<<20), NewConn(two, 1<<20, 1<<20)
	for kind := range Kind(3) {
		from.Begin(kind + 1).Uint(uint64(kind))
		from.End()
	}
	from.Flush()
	from.Close()
	for kind := range Kind(3) {
		stop := errors.New("stop")
		require.ErrorIs(t, to.Receive(func(got Kind, r *Reader) error {
			require.Equal(t, kind+1, got)
			require.Equal(t, uint64(kind), r.Uint())
			return stop
		}, nothing), stop)
	}
	require.ErrorIs(t, to.Receive(nil, nothing), io.EOF)
}
