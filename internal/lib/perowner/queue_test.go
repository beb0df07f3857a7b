package perowner

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// work is an item of a test.
type work struct {
	owner string
	n     int
}

// held is a queue whose items wait until the test lets them go.
type held struct {
	*Queue[work]
	mu     sync.Mutex
	begun  []string
	came   chan struct{}
	letGo  chan struct{}
	busy   map[string]int
	mostOf map[string]int
}

func hold(b Bounds) *held {
	h := &held{came: make(chan struct{}, 1000), letGo: make(chan struct{}), busy: map[string]int{},
		mostOf: map[string]int{}}
	h.Queue = NewQueue(b, func(w work) {
		h.mu.Lock()
		h.begun = append(h.begun, fmt.Sprint(w.owner, w.n))
		h.busy[w.owner]++
		h.mostOf[w.owner] = max(h.mostOf[w.owner], h.busy[w.owner])
		h.mu.Unlock()
		h.came <- struct{}{}
		<-h.letGo
		h.mu.Lock()
		h.busy[w.owner]--
		h.mu.Unlock()
	})
	return h
}

func (h *held) push(owner string, n int) bool { return h.Push(owner, 1, work{owner, n}) }

// The owner of a flood waits for itself: others are next, and each owner's items stay in order.
func TestQueueTakesOwnersInTurn(t *testing.T) {
	t.Parallel()
	h := hold(Bounds{Most: 100, MostBytes: 1000, Workers: 1, PerOwner: 1})
	require.True(t, h.push("a", 0))
	<-h.came
	for n := 1; n < 20; n++ {
		require.True(t, h.push("a", n))
	}
	require.True(t, h.push("b", 0))
	require.True(t, h.push("b", 1))
	require.True(t, h.push("c", 0))
	close(h.letGo)
	h.Close()
	require.Equal(t, []string{"a0", "a1", "b0", "c0", "a2", "b1", "a3"}, h.begun[:7])
	require.Len(t, h.begun, 23)
	require.Equal(t, "a19", h.begun[22])
	require.Empty(t, h.of, "an owner without items is forgotten")
	require.False(t, h.push("a", 0), "it is closed")
}

// An owner has as many items and bytes as are free, and so leaves some for others.
func TestQueueHasRoomForOthers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 10} { // the number is the bound, then the bytes
		h := hold(Bounds{Most: 64, MostBytes: 320, Workers: 1, PerOwner: 1})
		require.True(t, h.push("first", 0))
		<-h.came
		n := 0
		for h.Push("flood", size, work{"flood", n}) {
			n++
		}
		require.Equal(t, []int{32, 16}[size/10], n)
		for range 3 {
			require.True(t, h.Push("good", size, work{"good", 0}))
		}
		require.False(t, h.Push("flood", size, work{"flood", 0}))
		require.False(t, h.Push("other", 321, work{"other", 0}), "larger than all")
		close(h.letGo)
		h.Close()
		require.Len(t, h.begun, n+4)
		require.Zero(t, h.n)
		require.Zero(t, h.bytes)
	}
}

// One owner has a few items under way, and fewer when few workers are idle. A worker remains for others.
func TestQueueBoundsItemsUnderWay(t *testing.T) {
	t.Parallel()
	h := hold(Bounds{Most: 1000, MostBytes: 1000, Workers: 8, PerOwner: 4})
	for _, owner := range []string{"a", "b"} {
		for n := range 20 {
			require.True(t, h.push(owner, n))
		}
	}
	for range 6 { // 4 of a; 2 of b, when two workers remain
		<-h.came
	}
	h.push("c", 0)
	<-h.came
	h.push("d", 0)
	<-h.came
	h.mu.Lock()
	begun := len(h.begun)
	h.mu.Unlock()
	require.Equal(t, 8, begun)
	close(h.letGo)
	h.Close()
	require.Len(t, h.begun, 42)
	require.LessOrEqual(t, h.mostOf["a"], 4)
	require.LessOrEqual(t, h.mostOf["b"], 4)
}

// Workers that wait are woken one for each item, so that items are done at once.
func TestQueueWakesAWorkerForEachItem(t *testing.T) {
	t.Parallel()
	h := hold(Bounds{Most: 100, MostBytes: 100, Workers: 3, PerOwner: 1})
	for range 100 {
		for _, owner := range []string{"a", "b", "c"} {
			require.True(t, h.push(owner, 0))
		}
		for range 3 {
			<-h.came // all are under way: none of them has ended
		}
		for range 3 {
			h.letGo <- struct{}{}
		}
		require.Eventually(t, func() bool { // they wait again
			h.Queue.mu.Lock()
			defer h.Queue.mu.Unlock()
			return h.idle == 3
		}, time.Minute, 100*time.Microsecond)
	}
	close(h.letGo)
	h.Close()
}

// At its usual rate, a message costs no allocation.
func TestQueueAllocatesNothing(t *testing.T) {
	done := make(chan struct{}, 1)
	q := NewQueue(Bounds{Most: 64, MostBytes: 1 << 20, Workers: 1, PerOwner: 1}, func(*work) { done <- struct{}{} })
	defer q.Close()
	w := &work{}
	require.Zero(t, int(testing.AllocsPerRun(2000, func() {
		q.Push("acme", 1, w)
		<-done
	})))
}
