package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

const echoJSON = `export default { async fetch(request) { const x = await request.json(); return Response.json({ ok: true, id: x.id, user: x.user }) } }`

const echoBody = `{"id":1,"user":{"name":"Ada Lovelace","email":"ada@example.test","roles":["admin","ops"]}}`

// eachOwner returns one worker for each of that many owners.
func eachOwner(owners int, mode workers.Mode, code string) []*workers.Worker {
	list := make([]*workers.Worker, owners)
	for i := range list {
		list[i] = worker("w", code)
		list[i].Owner, list[i].Mode, list[i].Limits.CPU = fmt.Sprint("owner", i), mode, workers.Millis(10*time.Second)
	}
	return list
}

// rush runs n events of these workers, with at most under of them under way, and takes the next worker after each
// `runs` events.
func rush(b *testing.B, p *bench, list []*workers.Worker, n, under, runs int, body string) {
	b.Helper()
	window := make([]*outcome, 0, under)
	for i := range n {
		if len(window) == under {
			<-window[0].ended
			require.Nil(b, window[0].end.Failure)
			window = window[1:]
		}
		window = append(window, p.start(list[i/runs%len(list)], fetch("POST", "http://x/", body)))
	}
	for _, o := range window {
		<-o.ended
	}
}

// perEvent reports the cost of one event of the benchmark.
func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(events), "µs/event")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkModes measures a small JSON request and response by a worker. The worker is warm in the modes that keep
// contexts.
func BenchmarkModes(b *testing.B) {
	for _, mode := range workers.Modes {
		b.Run(string(mode), func(b *testing.B) {
			p := newBench(b)
			list := eachOwner(1, mode, echoJSON)
			rush(b, p, list, 100, 64, 1, echoBody)
			const batch = 64
			b.ResetTimer()
			for range b.N {
				rush(b, p, list, batch, 64, 1, echoBody)
			}
			perEvent(b, b.N*batch)
		})
	}
}

// BenchmarkContention compares mode shared with pinned when many threads need few isolates. According to the documents
// on which Pinwheel is based, a shared pool is slower in this case.
func BenchmarkContention(b *testing.B) {
	work := map[string]string{
		"echo": echoJSON,
		"cpu":  `export default { fetch() { let n = 0; const until = Date.now() + 1; while (Date.now() < until) n++; return new Response("ok") } }`,
		"io":   `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 5)) }`,
	}
	for _, kind := range []string{"echo", "cpu", "io"} {
		for _, owners := range []int{1, 16} {
			for _, threads := range []int{1, 2, 4} {
				for _, mode := range []workers.Mode{workers.Pinned, workers.Shared} {
					b.Run(fmt.Sprintf("%s/owners=%d/threads=%d/%s", kind, owners, threads, mode), func(b *testing.B) {
						p := newBench(b, func(c *Config) { c.Threads = threads })
						list := eachOwner(owners, mode, work[kind])
						rush(b, p, list, 20*owners, 64, 1, echoBody)
						const batch = 256
						b.ResetTimer()
						for range b.N {
							rush(b, p, list, batch, 64, 1, echoBody)
						}
						perEvent(b, b.N*batch)
					})
				}
			}
		}
	}
}

// BenchmarkIsolates measures the effect of the number of isolates between which a thread alternates: each is cold in
// the processor's caches.
func BenchmarkIsolates(b *testing.B) {
	for _, n := range []int{1, 50, 500} {
		for _, runs := range []int{1, 8} {
			b.Run(fmt.Sprintf("isolates=%d/runs=%d", n, runs), func(b *testing.B) {
				p := newBench(b, func(c *Config) { c.MaxIsolates = 600 })
				list := eachOwner(n, workers.Pinned, echoJSON)
				rush(b, p, list, 4*n*runs, 16, runs, echoBody)
				const batch = 1000
				b.ResetTimer()
				for range b.N {
					rush(b, p, list, batch, 16, runs, echoBody)
				}
				perEvent(b, b.N*batch)
			})
		}
	}
}

// BenchmarkMemory measures the memory of idle isolates and contexts, as the growth of the process's RSS.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		what    string
		owners  int
		workers int
	}{{"isolate", 200, 1}, {"context", 1, 200}} {
		b.Run(c.what, func(b *testing.B) {
			for b.Loop() {
				p := newBench(b, func(cfg *Config) {
					cfg.MaxIsolates, cfg.OwnerMaxIsolates, cfg.ContextsPerIsolate = 400, 400,
						1000
				})
				run := func(owner, name int) {
					w := worker(fmt.Sprint("w", name), echoJSON)
					w.Owner = fmt.Sprint("owner", owner)
					p.run(w, fetch("POST", "http://x/", echoBody))
				}
				run(0, 0)
				before := rss(b)
				for o := range c.owners {
					for w := range c.workers {
						run(o, w)
					}
				}
				b.ReportMetric(float64(rss(b)-before)/200/1024, "KB/"+c.what)
				p.close()
			}
		})
	}
}
