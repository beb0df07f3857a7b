package isolates

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// burnsOn is the CPU time that a runaway may use before a test takes it for one that never comes back. V8 looks for a
// termination only once in some thousand iterations of a loop that it has not compiled well. Where each takes 100 µs
// that is after a second. Where the machine takes 13 µs for each new page, an array of 160 KB takes ten times as long.
const burnsOn = time.Minute

// strays is a builtin that V8 does not end before it is done, which takes a third of a second of CPU time.
const strays = `Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 1e6)`

// straying makes a worker with a handler that V8 does not end.
func straying(name string) *workers.Worker {
	w := worker(name, `export default { fetch() { `+strays+`; return new Response("it has ended by itself") } }`)
	w.Limits = short
	return w
}

// awaitRunaways waits until all runaways of the pool are back. On a busy machine they may run seldom. So the CPU time
// that they use bounds the wait.
func awaitRunaways(t testing.TB, p *Pool, what ...any) {
	t.Helper()
	back := func() bool { return p.losses.back.Load() == p.losses.ranAway.Load() }
	require.Eventually(t, func() bool { return back() || p.losses.runaways.burned() > burnsOn }, time.Hour,
		time.Millisecond, what...)
	require.True(t, back(), what...)
}

// burned returns the most CPU time that one has used since it became a runaway.
func (s *runaways) burned() (most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		most = max(most, threadCPU(x.tid)-x.cpu)
	}
	return most
}

// Some builtins cannot be interrupted. Another thread takes the place of the one that is in such a builtin. That thread
// ends when V8 lets it go.
func TestThreadThatV8DoesNotLetGoIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := straying("long")
	sleeper := worker("sleeper", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("slept")), 60000)) }`)
	sleeper.Owner = "other"
	beside := b.begin(sleeper, fetch("GET", "http://x/", ""))
	o := b.run(long, fetch("GET", "http://x/", ""))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	require.True(t, o.end.Lost)
	beside.wait(t, beside.ended)
	require.True(t, beside.end.Interrupted, "what waited on the thread runs again")
	require.False(t, beside.end.Lost)
	ok := b.run(worker("ok", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	require.Equal(t, "ok", string(ok.reply.Body))
	require.EqualValues(t, 1, b.pool.losses.ranAway.Load())
	awaitRunaways(t, b.pool)
}

// V8 may end a turn just when its thread is given up. The cause is still known, and nothing is counted twice.
func TestThreadThatComesBackWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	back := make(chan struct{})
	b.pool.losses.onRunaway = func(t *thread) {
		assert.Eventually(b.t, t.watch.ended, patience, time.Millisecond, "it has left V8")
		for range 1000 { // and does what it can, until it ends or waits
			runtime.Gosched()
		}
		close(back)
	}
	long := straying("long")
	o := b.run(long, fetch("GET", "http://x/", ""))
	<-back
	require.False(t, o.end.Interrupted)
	require.NotNil(t, o.end.Failure, "it is not taken for one that another event took down")
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	require.True(t, o.end.Lost)
	require.EqualValues(t, 1, b.pool.losses.ranAway.Load())
	awaitRunaways(t, b.pool)
	require.Equal(t, []string{long.Target()}, b.lost)
	require.EqualValues(t, 1, b.pool.Stats().Kills[string(events.ReasonCPU)])
	ok := b.run(worker("ok", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	require.Equal(t, "ok", string(ok.reply.Body))
	require.NoError(t, b.pool.Healthy())
	require.Zero(t, b.pool.memory.lost.Load())
	b.close()
	require.Zero(t, b.pool.memory.live.Load())
}

// A thread that is lost between events counts for the worker of the context, too.
func TestThreadThatIsLostBetweenEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("between", `export default { fetch() { return new Response("ok") } }
		setTimeout(() => `+strays+`, 50)`)
	w.Mode = workers.Persistent
	w.Limits.CPU = workers.Millis(20 * time.Millisecond)
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.lost) == 1
	}, patience, time.Millisecond)
	require.Equal(t, []string{w.Target()}, b.lost)
}

// stuckSource never lets a thread continue.
type stuckSource struct {
	*bench
	asked, free chan struct{}
}

func (s stuckSource) Next(int, int) []*lifecycle.Attempt {
	close(s.asked)
	<-s.free
	return nil
}

// A thread that does not end does not keep the process from ending.
func TestCloseDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	s := stuckSource{&bench{t: t}, make(chan struct{}), make(chan struct{})}
	p, err := New(DefaultConfig(1), s, s)
	require.NoError(t, err)
	p.end.patience = 20 * time.Millisecond
	require.NoError(t, p.Open())
	<-s.asked
	closed := make(chan struct{})
	go func() { p.Close(); close(closed) }()
	(&outcome{}).wait(t, closed)
	close(s.free)
	p.end.threads.Wait()
}

// A thread that gets no processor, however long, is not lost: only CPU time since its kill counts. One that sleeps is.
func TestThreadThatGetsNoProcessorIsNotLost(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var w watch
	w.pin(unix.Gettid())
	w.isolate, w.killed, w.grace = &v8x.Isolate{}, events.ReasonCPU, 1
	w.killedAt, w.killCPU = time.Now(), threadCPU(w.tid)+time.Hour // it uses none from here on
	for range 3 * asleepChecks {
		require.Equal(t, stayShort, w.stay(w.killedAt.Add(time.Hour), lostAfter))
	}
	w.killCPU = threadCPU(w.tid)
	for threadCPU(w.tid) < w.killCPU+overstaysAfter+10*time.Millisecond { // a loop that nothing stops
		continue
	}
	require.Equal(t, stayLong, w.stay(w.killedAt, lostAfter), "whatever the time")
	require.Equal(t, stayForever, w.stay(w.killedAt, overstaysAfter))
	w.killed = stopped
	require.Equal(t, stayForever, w.stay(w.killedAt, lostAfter), "the pool closes")
	w.killed = events.ReasonCPU
	var lost atomic.Bool
	w.run = &run{}
	w.isolate = nil
	require.Nil(t, w.giveUp(&lost), "it has just ended")
	require.False(t, lost.Load())

	asleep := make(chan int)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		asleep <- unix.Gettid()
		<-done
	}()
	defer close(done)
	var sleeper watch
	sleeper.pin(<-asleep)
	sleeper.isolate, sleeper.killed, sleeper.grace = &v8x.Isolate{}, events.ReasonCPU, 1
	sleeper.killedAt, sleeper.killCPU = time.Now(), threadCPU(sleeper.tid)
	require.Equal(t, stayShort, sleeper.stay(sleeper.killedAt.Add(asleepAfter), lostAfter))
	require.Eventually(t, func() bool {
		return sleeper.stay(sleeper.killedAt.Add(asleepAfter+1), lostAfter) == stayForever
	}, patience, time.Microsecond)
}

// A runaway has the lowest priority. One that continues to use CPU time is throttled for most of the time.
func TestRunawayThatBurnsOnIsThrottled(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) {
		p.losses.runaways.throttleAfter, p.losses.runaways.nice = 5*time.Millisecond, runawayNice
	})
	runaways := &b.pool.losses.runaways
	tid := b.pool.threads[0].Load().watch.pinned
	require.Eventually(t, func() bool { return tid() != 0 }, patience, time.Millisecond)
	runaway := tid()
	long := worker("long", `export default { fetch() { Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 3e6) } }`)
	long.Limits = short
	o := b.run(long, fetch("GET", "http://x/", ""))
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	// On a busy machine it takes seconds to use so much.
	require.Eventually(t, func() bool {
		runaways.mu.Lock()
		defer runaways.mu.Unlock()
		return runaways.throttled > 0
	}, patience, time.Millisecond)
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, runaway)
	require.NoError(t, err)
	require.Equal(t, runawayNice, 20-nice) // the value that the system call returns
	start, cpu := time.Now(), threadCPU(runaway)
	require.Eventually(t, func() bool { return time.Since(start) > 4*throttleEvery }, patience, time.Millisecond)
	require.Less(t, threadCPU(runaway)-cpu, time.Since(start)/4)
	require.Zero(t, b.pool.losses.back.Load(), "it is still there")
}
