// Package isolates runs JavaScript of many owners. It has pinned threads, each with its own V8 isolates; an event loop
// that lets other events run while one waits; limits on time and memory; and the web APIs (isolates/js) that handlers
// use.
//
// A thread is one goroutine that is locked to its OS thread for life. It owns its isolates. No other goroutine touches
// its V8, except the watchdog, which may terminate the JavaScript that runs. Two tenants never share an isolate. A
// tenant is an owner, or a group of owners that trust each other (workers.Policy.Group), with the same compilers
// (workers.Policy.Compilers). An isolate has contexts, one or more for each worker and version. A context has at most
// one event at a time and is discarded after any failure. A context of mode persistent runs several events at once,
// and outlives the failure of one. After Config.ContextMaxReuses events a context is made anew, unless its isolate is
// small.
//
// The parts of a pool, from what other goroutines call down to what everything uses:
//
//   - Pool and Checker, and what ends contexts (contexts.go); metrics.
//   - The watchdog: it ends turns that exceed a limit (watch), sends long ones away (away.go), and replaces threads
//     that V8 does not give back (runaway.go).
//   - thread: the loop (loop.go), and the turns of a run (turn.go, commands.go, body.go, end.go).
//   - placer: in which context an event runs, by mode, and what becomes of the context.
//   - persistents and heaps: the contexts and isolates of one thread. They know no thread, and have no locks.
//   - poolHeaps: what the heaps of all threads share.
//   - run, jsContext, isolate: one attempt, and where it runs.
//
// Files use files below them. What JavaScript asks of Go is in package hostcalls, which ends it when the run ends.
//
// Parts that know no run have packages of their own: owners (what an owner may have), inbox and callqueue (what waits
// for a thread), affinity (threads of persistent workers), holdings and charges (what counts against limits), timers,
// stacks (in the author's files), codecache (compiled code), prewarm (isolates made in advance) and stats (figures).
//
// Work comes from a Source (package dispatch) in batches and goes back as Reports in batches. An attempt ends in two
// phases: the Reply when the response is ready, and the End when nothing that it passed to waitUntil is left, within
// the rest of its wall-clock limit.
//
// The package does not depend on NATS and makes no decisions about retries.
package isolates
