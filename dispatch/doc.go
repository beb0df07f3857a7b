// Package dispatch decides which event runs next, on which thread, and what becomes of it.
//
// Events come in batches from package consumer (Submit), wait in one queue per owner, and are
// handed to the threads of package isolates when these ask for work (Next). A thread tells by
// Report how an attempt went; dispatch judges that to a Settlement and gives it to its Settler.
//
// The Dispatcher is passive: one mutex, no goroutine and no channel per event. Its only
// goroutine is the caller of Run, which fails queued events whose deadline passes. What it decides
// by is in functions and types without locks or clocks:
//
//   - turns: whose turn it is. Deficit round robin over owners in units of CPU time.
//   - nap: which sleeping threads to wake.
//   - judge and refuse: design §4's table, from how an attempt ended to the verdict.
//   - retryDelay: how long until the next attempt.
//
// The package knows neither NATS nor V8.
package dispatch
