package v8x

// #include "v8x.h"
import "C"

// Live is what exists in the process.
type Live struct {
	Isolates int // attached, and not closed
	Contexts int // each has one cgo.Handle
	Globals  int // handles that keep values of V8 alive
	Budgets  int // of ArrayBuffers: an isolate's lives until the last of its buffers is collected
}

// Alive counts what exists, so that tests can see what is never freed. From any goroutine.
func Alive() Live {
	var l C.v8x_live
	C.v8x_count_live(&l)
	return Live{int(l.isolates), int(l.contexts), int(l.globals), int(l.budgets)}
}

// Allocated is how many bytes C++ has allocated and not freed, for the same tests.
func Allocated() int { return int(C.v8x_allocated()) }

// Trim gives memory that C++ has freed back to the system. It takes milliseconds, during which nobody allocates. From
// any goroutine.
func Trim() { C.v8x_trim() }
