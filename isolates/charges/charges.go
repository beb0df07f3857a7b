// Package charges computes what an isolate is charged for: its heap, its functions or its machine code.
package charges

import "github.com/pinwheel-run/pinwheel/isolates/v8x"

// V8 has one table for the functions of all isolates of a process, and one range of addresses for their machine code.
// Neither must be full. So an isolate is charged for its heap, for its functions, or for its machine code: the most of
// the three. mostFunctions, or mostCode, are charged like the heaps of all isolates together. The rest of the table is
// for functions of WebAssembly, and for what isolates leave empty. The rest of the range is for what compiles between
// measurements.
const (
	mostFunctions = v8x.MaxFunctions * 3 / 4
	mostCode      = v8x.MaxCode * 3 / 4
)

// Rates are the bytes that an isolate is charged for a function, and for 1024 bytes of machine code.
type Rates struct{ Function, CodeKB int64 }

// For returns the rates for a process whose isolates may have heapMB together.
func For(heapMB int) Rates {
	most := int64(heapMB) << 20
	return Rates{max(1, most/mostFunctions), max(1, most/(mostCode>>10))}
}

// Of returns what an isolate is charged, in bytes, for a heap and machine code of that many bytes, and for functions.
func (c Rates) Of(heap, functions, code int64) int64 {
	return max(heap, functions*c.Function, code>>10*c.CodeKB)
}

// Functions counts what an isolate has in V8's table.
type Functions struct {
	live int64 // of its contexts
	// of contexts that were closed before V8 last collected all garbage, and since. V8 may begin to look for garbage
	// before a context is closed, and free it with the collection after that.
	closed, closedNow int64
	collections       uint32 // when these were counted
}

// Opened counts the functions of a context that was made.
func (f *Functions) Opened(n int64) { f.live += n }

// Dropped counts the functions of a context that was closed.
func (f *Functions) Dropped(n int64) { f.live, f.closedNow = f.live-n, f.closedNow+n }

// Collected records how many times V8 has collected all garbage by now.
func (f *Functions) Collected(times uint32) {
	if times != f.collections {
		f.closed = f.closedNow
		if times-f.collections > 1 {
			f.closed = 0
		}
		f.closedNow, f.collections = 0, times
	}
}

// Count returns how many functions V8 may have for the isolate.
func (f *Functions) Count() int64 { return f.live + f.closed + f.closedNow }
