package isolates

import "testing"

// BenchmarkCold is the first event of a worker that no thread has seen: a new isolate, a new context, the
// runtime, the module and the event.
func BenchmarkCold(bm *testing.B) {
	b := newBench(bm)
	for i := 0; bm.Loop(); i++ {
		w := worker("w", `export default { fetch: () => new Response("ok") }`)
		w.Owner = "owner" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		b.run(w, fetch("GET", "http://x/", ""))
	}
}
