// Package isolates runs the JavaScript of other people: pinned threads, each with its own V8
// isolates, an event loop that lets other events run while one waits, limits on time and memory, and
// the web APIs (isolates/js) that handlers find.
//
// A thread is one goroutine locked to its OS thread for life. It owns its isolates; nobody else
// touches V8, but for the watchdog, which may terminate what runs. An isolate is never shared by two owners. In it are
// contexts, one or more for each worker and version, each with at most one event at a time; a
// context is used again for up to Config.ContextMaxReuses events and thrown away after any failure.
//
// Work comes from a Source (package dispatch) in batches and goes back as Reports in batches. An
// attempt ends in two phases: the Reply when the response is ready, and the End when nothing it
// put into waitUntil is left, within what remains of its wall-clock limit.
//
// It knows nothing of NATS and decides nothing about retries.
package isolates
