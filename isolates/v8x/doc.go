// Package v8x is the seam to V8 beside v8go: contexts, modules and calls with bytes in and out,
// one crossing a turn. v8go starts V8 and makes, terminates and disposes isolates; v8x attaches to an
// isolate and does in it what v8go has no way to, or only by many crossings (docs/adr/0002).
//
// It is the only package of Pinwheel with C++ in it. V8's interface is declared by hand in
// v8abi.h for one version of V8, which Start compares with what was linked.
//
// Threads: an Isolate and its Contexts are used by one goroutine at a time, locked to its thread
// for as long as it uses them. Isolate.Flags and Isolate.Terminate may be called from anywhere, until Close.
//
// JavaScript reaches Go in two ways only: commands (host.send), which pile up in an outbox that each
// call returns, and questions (host.ask), answered by the Asker during the call. Neither can see a
// value of V8 from Go, so there is nothing to release and nothing to leak.
package v8x
