// Package dispatch decides which event runs next, on which thread, and what becomes of it.
//
// Events come in batches from package consumer (Submit), wait in one queue per owner, and are
// handed to the threads of package isolates when these ask for work (Next). A thread reports
// how an attempt went (Report). Dispatch judges the report and passes a Settlement to its Settler.
//
// The Dispatcher is passive: one mutex, no goroutine and no channel per event. Its only
// goroutine is the caller of Run, which fails queued events whose deadline passes. The decisions
// are made by functions and types without locks or clocks:
//
//   - fairQueue: which owner is served next. Deficit round robin over owners in units of CPU time.
//   - idleThreads: which sleeping threads to wake, and which of the others take events soon.
//   - judge and refuse: the table of docs/development/guarantees.md, from how an attempt ended to the verdict.
//   - retryDelay: how long until the next attempt.
//
// The package knows neither NATS nor V8.
package dispatch
