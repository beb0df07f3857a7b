package isolates

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// echoes answer each request with "ok", and each call with its arguments.
type echoes struct{}

func (echoes) Call(c *lifecycle.ServiceCall, args []byte, answer func([]byte, error)) func() {
	go func() {
		c.Ended()
		answer(args, nil)
	}()
	return func() {}
}

func (echoes) Fetch(_ *http.Request, _ []byte, c *lifecycle.ServiceCall) lifecycle.ServiceRequest {
	return echoed{c}
}

type echoed struct{ *lifecycle.ServiceCall }

func (echoed) Cancel() bool { return false }

func (e echoed) Start(answer func(bool, func(http.ResponseWriter) error)) {
	e.Ended()
	go answer(true, func(w http.ResponseWriter) error {
		w.Header().Set("Content-Length", "2")
		_, err := io.WriteString(w, "ok")
		return err
	})
}

// A turn that brings an answer goes away. What the answer held is given back, and its place among the calls under way:
// the handler makes more calls than may be under way at once.
func TestAnswersWhoseTurnsGoAway(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"a binding":                `await env.KV.get("large" + i, "arrayBuffer")`,
		"a method of a service":    `await env.OTHER.echo(false, "x".repeat(1e5))`,
		"a response of a service":  `await env.OTHER.fetch("http://other/")`,
		"a part of the event":      `await parts.read()`,
		"an operation of a stream": `await new Response(new Blob(["x".repeat(1e5)]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *Config) { c.Services = echoes{} })
			w := kvWorker(`export default { async fetch(r, env) {
				const parts = r.body.getReader();
				for (let i = 0; i < 12; i++) { ` + call + `; ` + work(40) + ` }
				return new Response("done");
			} }`)
			w.Services = map[string]string{"OTHER": "other"}
			w.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(patience)}
			o := b.start(w, fetch("POST", "http://w/", "some text"))
			for !o.isOver() {
				require.Nil(t, b.run(quick(), task("null")).end.Failure)
			}
			require.Nil(t, o.end.Failure)
			require.Equal(t, "done", string(o.reply.Body))
			b.holdsNothing()
			b.mu.Lock()
			defer b.mu.Unlock()
			require.NotZero(t, b.leaves)
		})
	}
}

// What runs held is given back when a turn or a thread is lost: that of the culprit, of the answers that come for it
// meanwhile, and, with the thread, of others.
func TestLostRunsHoldNothing(t *testing.T) {
	t.Parallel()
	const givesUp = `"a".repeat(2 ** 27).match(/a/g)` // a fatal error of V8
	// Three times as long as strays: a watchdog that comes late on a busy machine still finds it.
	const straysLonger = `Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 3e6)`
	for name, c := range map[string]struct {
		code   string
		thread bool
	}{
		"a turn that strays":        {straysLonger, false},
		"a turn that V8 gives up":   {work(60) + givesUp, false},
		"a thread that V8 gives up": {givesUp, true},
		"a thread that strays":      {straysLonger, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			beside := of("beta", kvWorker(`export default { async fetch(r, env) { await env.KV.get("never") } }`))
			beside.Limits.Wall = workers.Millis(patience)
			waits := b.start(beside, fetch("GET", "http://w/", ""))
			require.Eventually(t, func() bool { return b.pool.holdings.Of("beta") > 0 }, patience, time.Millisecond)
			keys := `["large"]`
			if !c.thread { // answers wait: so the turn goes away
				keys = `["large", "large", "a", "b", "c"]`
			}
			w := kvWorker(`export default { async fetch(r, env) {
				await Promise.race(` + keys + `.map((key) => env.KV.get(key, "arrayBuffer")));
				` + c.code + `
			} }`)
			if c.code == straysLonger {
				w.Limits.CPU = workers.Millis(400 * time.Millisecond) // enough for the answers, and less than straysLonger takes
			}
			culprit := b.start(w, fetch("GET", "http://w/", ""))
			for !c.thread && !culprit.isOver() {
				require.Nil(t, b.run(quick(), task("null")).end.Failure)
			}
			culprit.wait(t, culprit.ended)
			require.True(t, culprit.end.Lost, culprit.end.Failure)
			require.Eventually(t, func() bool { return b.pool.holdings.Of("acme") == 0 }, patience, time.Millisecond)
			if c.thread {
				waits.wait(t, waits.ended)
				b.holdsNothing()
			} else {
				require.NotZero(t, b.pool.holdings.Of("beta"), "the thread went on")
				require.False(t, waits.isOver())
			}
			if c.code == straysLonger {
				awaitRunaways(t, b.pool)
			}
		})
	}
}
