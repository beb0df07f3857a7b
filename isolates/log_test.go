package isolates

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an event says in the turn in which it ends is told, and nothing that it does then.
func TestLastWords(t *testing.T) {
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch(request, env) {
			Promise.reject(new Error("forgotten"));
			queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => { console.log("after"); env.JOBS.send("after"); setTimeout(() => console.log("never"), 1) })));
			return new Response("ok");
		} }`)
		w.Queues = map[string]string{"JOBS": "jobs"}
		for range 2 {
			o := b.run(w, fetch("GET", "http://x/", ""))
			require.Nil(t, o.end.Failure)
			require.Equal(t, "ok", string(o.reply.Body))
		}
		said := []string{"after", "uncaught: Error: forgotten", "uncaught: Error: Queue.send: the event is over"}
		require.Equal(t, slices.Concat(said, said), b.lines())
		require.Empty(t, b.sent)
	})
}
