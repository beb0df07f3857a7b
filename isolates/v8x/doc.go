// Package v8x is the interface to V8 in addition to v8go: contexts, modules and calls with bytes in and out, one cgo
// call per turn. v8go starts V8 and makes, terminates and disposes isolates. v8x attaches to an isolate. It does what
// v8go cannot do, or what takes many cgo calls with v8go (docs/development/adr/0002).
//
// It is the only package of Pinwheel with C++ in it. v8abi.h declares V8's interface by hand for one version of V8.
// Start compares that version with the linked one.
//
// Threads: one goroutine at a time uses an Isolate and its Contexts. It is locked to its thread for as long as it uses
// them. Isolate.Flags and Isolate.Terminate may be called from any goroutine, until Close.
//
// JavaScript reaches Go in two ways only: commands (host.send), which collect in an outbox that each call returns, and
// synchronous questions (host.ask), which the HostFunc answers during the call. In both, Go never sees a value of V8.
// So there is nothing to release and nothing to leak.
package v8x
