package v8x

// #include "v8x.h"
import "C"

// Live counts the objects that exist in the process.
type Live struct {
	Isolates int // attached and not closed
	Contexts int // each has one cgo.Handle
	Globals  int // handles that keep values of V8 alive
	Budgets  int // budgets of ArrayBuffers: an isolate's budget lives until the last of its buffers is collected
}

// Alive counts these objects, so that tests can find leaks. Any goroutine may call it.
func Alive() Live {
	var l C.v8x_live
	C.v8x_count_live(&l)
	return Live{int(l.isolates), int(l.contexts), int(l.globals), int(l.budgets)}
}

// Allocated returns how many bytes C++ has allocated and not freed, for the same tests.
func Allocated() int { return int(C.v8x_allocated()) }

// Trim returns memory to the system: what C++ has freed, and what is kept of closed isolates. It takes milliseconds, in
// which no thread can allocate C++ memory. Any goroutine may call it.
func Trim() { C.v8x_trim() }

// MostKept is how much memory of closed isolates a process keeps for the next ones, in bytes.
const MostKept = 24 << 20

var _ = [1]int{}[MostKept-C.V8X_MOST_KEPT] // they are equal, or this does not compile

// Blocks counts this memory. It is all zero.
type Blocks struct {
	Kept   int // bytes
	Reused int // blocks that an isolate got, since the process started
}

// KeptBlocks returns these figures, for tests. Any goroutine may call it.
func KeptBlocks() Blocks {
	var b C.v8x_blocks
	C.v8x_count_blocks(&b)
	return Blocks{int(b.kept), int(b.reused)}
}
