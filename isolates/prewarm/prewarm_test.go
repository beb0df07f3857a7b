package prewarm

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

func ready(t *testing.T, s *Set, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Stats().Ready == n }, time.Minute, time.Millisecond)
}

func TestNoSpareIsMadeWhileAThreadMakesOne(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, js.Start(v8x.AllCompilers))
	s := New(2)
	go s.Run()
	defer s.Close()
	ready(t, s, 2)
	s.making.Add(1)
	s.Isolate(limits).Close()
	ready(t, s, 1)
	require.Never(t, func() bool { return s.Stats().Ready > 1 }, 50*time.Millisecond, 5*time.Millisecond)
	s.making.Add(-1)
	s.signal()
	ready(t, s, 2)
}

func TestCloseWithoutItsMaker(t *testing.T) {
	s := New(2) // never run: as if V8 had parked its maker at once
	s.tid.Store(4711)
	require.False(t, s.Parked([]int{1, 2}))
	require.True(t, s.Parked([]int{1, 4711}))
	require.False(t, s.Parked([]int{1, 4711})) // reported once
	s.Close()
}
