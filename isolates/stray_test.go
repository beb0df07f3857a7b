package isolates

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Some builtins look at nothing until they are done. Another thread takes the place of the one that is in them, and
// when V8 lets that go it ends.
func TestThreadThatV8DoesNotLetGoIsReplaced(t *testing.T) {
	b := newBench(t)
	long := worker("long", `export default { fetch() { return new Response(String(Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 4e6))) } }`)
	sleeper := worker("sleeper", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("slept")), 60000)) }`)
	sleeper.Owner = "other"
	beside := b.start(sleeper, fetch("GET", "http://x/", ""))
	require.Eventually(t, func() bool { return b.pool.Stats().Running == 1 }, patience, time.Millisecond)
	o := b.run(long, fetch("GET", "http://x/", ""))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	beside.wait(t, beside.ended)
	require.True(t, beside.end.Interrupted, "what waited on the thread runs again")
	ok := b.run(worker("ok", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	require.Equal(t, "ok", string(ok.reply.Body))
	require.EqualValues(t, 1, b.pool.strayed.Load())
	require.Eventually(t, func() bool { return b.pool.back.Load() == 1 }, patience, time.Millisecond)
}

// stuckSource lets no thread go.
type stuckSource struct {
	*bench
	asked, free chan struct{}
}

func (s stuckSource) Next(int, int) []*events.Attempt {
	close(s.asked)
	<-s.free
	return nil
}

// A thread that does not end does not keep the process from ending.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	s := stuckSource{&bench{t: t}, make(chan struct{}), make(chan struct{})}
	p, err := New(DefaultConfig(1), s, s, prometheus.NewRegistry())
	require.NoError(t, err)
	p.patience = 20 * time.Millisecond
	require.NoError(t, p.Open())
	<-s.asked
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	(&outcome{}).wait(t, closed)
	close(s.free)
	p.running.Wait()
}

// A thread that a busy machine does not let run has not strayed: what counts is what it used since it was killed.
func TestThreadThatGetsNoProcessorHasNotStrayed(t *testing.T) {
	runtime.LockOSThread() // for good: its priority is lowered
	var w watch
	var lost atomic.Bool
	w.pin(unix.Gettid())
	w.isolate, w.killed, w.grace = &v8x.Isolate{}, stopped, 1
	w.killedAt, w.killCPU = time.Now(), threadCPU(w.tid)
	require.Nil(t, w.strayed(w.killedAt.Add(4*time.Second), &lost))
	for threadCPU(w.tid) < w.killCPU+strayAfter+10*time.Millisecond { // a loop that is not told to stop
	}
	require.Nil(t, w.strayed(w.killedAt.Add(strayAfter), &lost))
	require.NotNil(t, w.strayed(w.killedAt.Add(strayAfter+1), &lost))
	require.True(t, lost.Load())
	lost.Store(false)
	w.killCPU = threadCPU(w.tid)
	require.NotNil(t, w.strayed(w.killedAt.Add(strayAtLast+1), &lost), "whatever it does")
}

// A stray that burns on is held for most of the time.
func TestThreadThatBurnsOnIsHeld(t *testing.T) {
	b := newBench(t)
	b.pool.holdAfter = 50 * time.Millisecond
	tid := b.pool.threads[0].Load().watch.pinned
	require.Eventually(t, func() bool { return tid() != 0 }, patience, time.Millisecond)
	stray := tid()
	long := worker("long", `export default { fetch() { Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 2e7) } }`)
	o := b.run(long, fetch("GET", "http://x/", ""))
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	lost := threadCPU(stray)
	require.Eventually(t, func() bool { return threadCPU(stray) > lost+60*time.Millisecond }, patience, time.Millisecond)
	start, cpu := time.Now(), threadCPU(stray)
	require.Eventually(t, func() bool { return time.Since(start) > 4*holdEvery }, patience, time.Millisecond)
	require.Less(t, threadCPU(stray)-cpu, time.Since(start)/4)
	require.Zero(t, b.pool.back.Load(), "it is still there")
}
