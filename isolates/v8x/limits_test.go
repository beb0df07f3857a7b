package v8x

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// grow fills the heap until it is ended.
const grow = `export default () => { const a = []; for (;;) a.push(new Array(1000).fill(1.5)) }`

// endOf fills the heap of an isolate and returns how large it became, in MB.
func endOf(t *testing.T, iso *Isolate) float64 {
	t.Helper()
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	c.Module(Source{Name: "m.js", Text: grow})
	var call Call
	require.True(t, c.Call(call.Reset(50).Bytes(), nil).Terminated)
	require.Equal(t, HeapLimit, iso.Flags())
	return float64(iso.HeapBytes()) / (1 << 20)
}

// An isolate whose limit is changed, up or down, ends at the same size as one made with that limit.
func TestSetLimits(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	for _, mb := range []uint64{8, 64, 128, 512} {
		l := Limits{Heap: mb << 20, Buffers: 1 << 20}
		made := NewIsolate(l)
		changed := NewIsolate(Limits{Heap: 128 << 20, Buffers: 128 << 20})
		require.NoError(t, changed.Prepare())
		changed.SetLimits(l)
		want, got := endOf(t, made), endOf(t, changed)
		t.Logf("%d MB: made so %.1f, changed %.1f", mb, want, got)
		require.InDelta(t, want, got, float64(mb)/16+1)
		made.Close()
		changed.Close()
	}
}

func TestSetLimitsOfBuffers(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	iso := NewIsolate(Limits{Heap: 64 << 20, Buffers: 64 << 20})
	defer iso.Close()
	iso.SetLimits(Limits{Heap: 64 << 20, Buffers: 2 << 20})
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	c.Module(Source{Name: "m.js", Text: `export default (mb) => new Uint8Array(mb << 20)`})
	var call Call
	require.NoError(t, c.Call(call.Reset(50).Number(1).Bytes(), nil).Err)
	require.ErrorContains(t, c.Call(call.Reset(50).Number(3).Bytes(), nil).Err, "Array buffer allocation failed")
}

// An isolate made and prepared on one thread is used on another.
func TestPreparedElsewhere(t *testing.T) {
	require.NoError(t, start())
	ready := make(chan *Isolate)
	for range 8 {
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			iso := NewIsolate(roomy)
			if iso.Prepare() != nil {
				iso = nil
			}
			ready <- iso
		}()
	}
	runtime.LockOSThread()
	for range 8 {
		iso := <-ready
		require.NotNil(t, iso)
		prepared := iso.ready
		c, err := iso.NewContext(func([]byte) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
		require.Same(t, prepared, c)
		second, err := iso.NewContext(nil)
		require.NoError(t, err)
		require.NotSame(t, prepared, second)
		for _, c := range []*Context{c, second} {
			var call Call
			require.NoError(t, c.Call(call.Reset(51).Bytes(), nil).Err)
			c.Close()
		}
		iso.Close()
	}
	unused := NewIsolate(roomy)
	require.NoError(t, unused.Prepare())
	require.NoError(t, unused.Prepare())
	unused.Close()
}

// A raised limit holds for single values, too. V8 would otherwise refuse them at the original limit.
func TestSetLimitsForLargeValues(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	iso := NewIsolate(Limits{Heap: 128 << 20, Buffers: 1 << 20})
	defer iso.Close()
	iso.SetLimits(Limits{Heap: 256 << 20, Buffers: 1 << 20})
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	c.Module(Source{Name: "m.js", Text: `const keep = []; export default (n) => { keep.push(new Array(n).fill(0)) }`})
	for _, n := range []float64{15e6, 25e6, 15e6} { // 4 bytes each
		var call Call
		r := c.Call(call.Reset(50).Number(n).Bytes(), nil)
		require.NoError(t, r.Err)
		require.False(t, r.Terminated)
	}
	require.Zero(t, iso.Flags())
	require.Greater(t, iso.HeapBytes(), uint64(200<<20))
}

// The size of the other contexts is added to the limit, once. Setting it again does not add more.
func TestSetOthers(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	made := NewIsolate(Limits{Heap: 80 << 20, Buffers: 1 << 20})
	defer made.Close()
	want := endOf(t, made)
	for _, spare := range []bool{false, true} {
		iso := NewIsolate(Limits{Heap: 64 << 20, Buffers: 1 << 20})
		if spare {
			iso.Close()
			iso = NewIsolate(Limits{Heap: 128 << 20, Buffers: 1 << 20})
			iso.SetLimits(Limits{Heap: 64 << 20, Buffers: 1 << 20})
		}
		for _, mb := range []uint64{16, 2, 16} {
			iso.SetOthers(mb << 20)
		}
		require.InDelta(t, want, endOf(t, iso), 6)
		iso.Close()
	}
}

// A heap may exceed the limit by more than the other contexts have when V8 asks about it. If the answer is not enough,
// V8 gives up, and the thread is lost.
func TestFewOthersCostNoThread(t *testing.T) {
	require.NoError(t, start())
	parked := len(Parked())
	ended := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(ended)
		for _, others := range []uint64{1, 64 << 10, 256 << 10, 1 << 20} {
			iso := NewIsolate(Limits{Heap: 24 << 20, Buffers: 1 << 20})
			iso.SetOthers(others)
			endOf(t, iso)
			iso.Close()
		}
	}()
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return len(Parked()) > parked
		}
	}, time.Minute, time.Millisecond)
	require.Len(t, Parked(), parked, "threads that V8 gave up")
}

func TestSetOthersOfBuffers(t *testing.T) {
	runtime.LockOSThread()
	require.NoError(t, start())
	iso := NewIsolate(Limits{Heap: 64 << 20, Buffers: 2 << 20})
	defer iso.Close()
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	c.Module(Source{Name: "m.js", Text: `export default (mb) => new Uint8Array(mb << 20)`})
	var call Call
	require.ErrorContains(t, c.Call(call.Reset(50).Number(3).Bytes(), nil).Err, "Array buffer allocation failed")
	iso.SetOthers(2 << 20)
	require.NoError(t, c.Call(call.Reset(50).Number(3).Bytes(), nil).Err)
	iso.SetOthers(0)
	require.ErrorContains(t, c.Call(call.Reset(50).Number(3).Bytes(), nil).Err, "Array buffer allocation failed")
}
