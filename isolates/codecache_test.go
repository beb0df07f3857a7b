package isolates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/codecache"
)

// counting has functions that are compiled only during an event, and reports where it throws.
var counting = counts + long

// long makes a module large enough for its code to be kept.
var long = "//" + strings.Repeat("-", codecache.Least)

const counts = `
let loads = 0;
const greet = (name) => "hello " + name;
loads++;
export default {
	async task(event) {
		if (event.payload.fail) throw new Error("line 7");
		return greet(event.payload.name) + " " + loads;
	},
};`

// other makes the thread of b drop its only isolate.
func other(b *bench) { b.run(owned("other", `export default { task() {} }`+long), task("{}")) }

func owned(owner, code string) *workers.Worker {
	w := worker("w", code)
	w.Owner = owner
	return w
}

func TestCodeIsKeptWithTheVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.MaxIsolates = 1 })
	b.cpu = ample
	for i := range 3 {
		o := b.run(owned("acme", counting), task(`{"name":"Ada"}`))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t, `{"success":true,"data":"hello Ada 1"}`, string(o.reply.Body), "start %d", i)
		other(b)
	}
	code := b.pool.Stats().Code
	require.EqualValues(t, 2+2, code.Hits) // both workers' second and third
	require.EqualValues(t, 2, code.Made)
	require.Equal(t, 2, code.Versions)
	require.Zero(t, code.Rejected)
	require.Greater(t, code.Bytes, len(counting))

	o := b.run(owned("acme", counting), task(`{"fail":true}`))
	require.Equal(t, "Error: line 7", o.end.Failure.Message)
	require.Contains(t, o.end.Failure.Stack, "w.js:7:33")
}

func TestCodeIsKeptAcrossThreads(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Threads, c.Slots = 2, 1 })
	b.cpu = ample
	w := owned("acme", `export default { task: () => new Promise((done) => setTimeout(done, 100)) }`+long)
	b.run(w, task("{}"))
	madeEventually(b, 1)
	one, two := b.start(w, task("{}")), b.start(w, task("{}")) // each on its own thread
	one.wait(t, one.ended)
	two.wait(t, two.ended)
	require.NotEqual(t, one.thread, two.thread)
	require.EqualValues(t, 1, b.pool.Stats().Code.Hits)
	require.EqualValues(t, 1, b.pool.Stats().Code.Made)
}

// madeEventually waits until the code of n versions is kept. That happens after the report of the event.
func madeEventually(b *bench, n uint64) {
	require.Eventually(b.t, func() bool { return b.pool.Stats().Code.Made == n }, patience, time.Millisecond)
}

func TestCodeOfOneOwnerServesNoOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	for i := range 3 {
		b.run(owned(fmt.Sprint("owner", i), counting), task(`{"name":"Ada"}`))
	}
	madeEventually(b, 3)
	require.Zero(t, b.pool.Stats().Code.Hits)
}

func TestBadCodeIsRejected(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.MaxIsolates = 1 })
	b.cpu = ample
	w := owned("acme", counting)
	b.run(w, task(`{"name":"Ada"}`))
	other(b)
	good := b.pool.code.Get(w)
	require.NotEmpty(t, good)
	for name, bad := range map[string][]byte{"cut": good[:len(good)/2], "nonsense": []byte(strings.Repeat("x", 1000)),
		"tiny": {1}} {
		t.Run(name, func(t *testing.T) {
			before := b.pool.Stats().Code.Rejected
			b.pool.code.Put(w, bad)
			o := b.run(w, task(`{"name":"Ada"}`))
			require.Nil(t, o.end.Failure)
			require.EqualValues(t, before+1, b.pool.Stats().Code.Rejected)
			other(b)
			require.Equal(t, good, b.pool.code.Get(w)) // made again
		})
	}
}
