// Package dispatch decides which event runs next, on which thread, and what becomes of it.
//
// Events come in batches from package consumer, and one by one from the gateway and from service calls (Submit). They
// wait in one queue per owner. The threads of package isolates ask for work (Next) and report how attempts went
// (Report). Dispatch judges each report and passes a Settlement to its Settler.
//
// The Dispatcher is passive: one mutex, and no goroutine, timer or channel per event. Its only goroutine is the caller
// of Run, which does what is due.
//
// # Pools
//
// An owner belongs to a pool of threads, and its events run on threads of that pool only (Config.PoolOf). Pool 0 is the
// process's own threads, and is always there. Another pool is the threads of a cell: of a process that is started when
// one of its threads is woken (Threads.Wake), and after whose end all of them sleep again (PoolEnded). So neither
// contexts nor threads are shared by owners of different pools. All pools have the same numbers of threads of both
// classes. Which owner is heavy, the limits, the leases and the account of crashes are decided over all pools. An event
// costs the same with any number of pools.
//
// # Parts
//
// The files stand in the order in which they use each other: a part calls those below it.
//
//  1. submit.go, next.go, running.go, deadline.go: the way of an event, a method of the Dispatcher for each step.
//     rules.go: what the fleet sets and tells while it runs: policies, processes, leases, crashes. stats.go says what
//     people and metrics may know: Figures.
//  2. dispatcher.go: the Dispatcher, and locked: what may let events start, or settles some, is changed there.
//  3. report.go: what becomes of the events that threads report about.
//  4. gatherer.go: makes batches of tasks before they enter their owners' queues.
//  5. placer.go: which owner of its pool a thread serves, and which threads are woken.
//  6. quarantine.go has events during whose runs processes died: each runs watched at first, and alone in the end.
//  7. backlog.go: the owners, and the counts over them. All parts share it.
//  8. gate.go: the rules about single events. Limits have an event wait: ownerlimit.go, workerlimit.go with its lease.
//     The account of crashes refuses them: bans.go, of workers that cost threads or processes. Those of paused owners
//     and workers wait elsewhere: hold.
//  9. shares.go: which owners took more than their share of the CPU, and run on background threads.
//  10. pool.go, idle.go: threads with the owners that run on them, and which of these threads sleep.
//  11. fair_queue.go: which owner is served next. Deficit round robin over owners in units of CPU time.
//  12. owner.go, route.go, queue.go: a tenant, a worker with its versions, a queue of events and an attempt. What a
//     part keeps of each tenant is a type in owner.go, or in account.go if it counts CPU time. What the limit of a
//     worker keeps of it is in concurrency.go.
//  13. effects.go: what is collected under the lock and carried out without it. metrics.go: what is counted.
//  14. verdict.go: judge, the table of docs/development/guarantees.md, and the delay until the next attempt.
//  15. config.go: the settings, and the constants of all parts.
//
// A new rule about when an event may start is a new gate. A new rule about whether it may run at all is asked in
// gates.refuse.
//
// # Locks
//
// Dispatcher.mu is the only lock. No method of another package is called while it is held, but Config.Rand,
// Config.PoolOf and the logger. So a Settler, the Threads, the Leases and the observers may take locks of their own and
// call the Dispatcher. Through, Lost and the methods of Crashes call none of them, so their callers may hold such a
// lock.
// Methods of all parts need d.mu held, but the exported ones of the Dispatcher and of what it hands out: Figures,
// Crashes and Lessee. So do the unexported ones of the Dispatcher but locked, lockedAt and apply.
//
// The package knows neither NATS nor V8.
package dispatch
