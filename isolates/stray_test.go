package isolates

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
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
