package v8x

// #include "v8x.h"
import "C"

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	v8 "rogchap.com/v8go"
)

// Version is the only version of V8 whose interface v8abi.h declares.
const Version = "13.6.233.10"

// Compilers say what V8 may make of JavaScript in this process: the value of its flag --max-opt.
type Compilers int

// The values of Compilers. Regular expressions are compiled with each of them.
const (
	Interpreter  Compilers = 0 // no machine code
	Baseline     Compilers = 1 // machine code without optimization, by Sparkplug
	AllCompilers Compilers = 3 // optimized code too, by Maglev and TurboFan
)

// Start sets V8's flags and starts it, once per process. It must be called before any other use of V8. Later calls
// return the result of the first, or an error when their compilers differ from its. It returns an error for any V8 but
// Version, because the layouts would differ from the declared ones.
func Start(with Compilers) error { return process.start(with) }

// process is V8 in this process.
var process starter

// starter starts V8 once.
type starter struct {
	once sync.Once
	with Compilers
	err  error
}

func (s *starter) start(with Compilers) error {
	s.once.Do(func() { s.with, s.err = with, startV8(with) })
	if s.err == nil && s.with != with {
		return fmt.Errorf("v8x: V8 was started with --max-opt=%d, and a process cannot change that to %d", s.with, with)
	}
	return s.err
}

func startV8(with Compilers) error {
	for _, f := range [...]string{
		// Threads that are older than V8 crash on machines with protection keys. All of Go's threads are older.
		"--no-memory-protection-keys",
		// A snapshot made by another process must never extend the shared read-only heap.
		"--no-extensible-ro-snapshot",
		// This optimization of V8's top compiler removes the check for termination from loops such as for (;;) new
		// Array(1000).fill(1.5). Then nothing can end them (docs/development/adr/0037).
		"--no-turboshaft-loop-unrolling",
		// The same for WebAssembly.
		"--no-wasm-loop-unrolling", "--no-wasm-loop-peeling",
		// The isolate's own thread compiles, so a run pays for what it has compiled. Functions with more bytecode than
		// this are not optimized: nothing interrupts a compiler, and this much takes it less than 100 ms.
		"--no-concurrent-recompilation", "--max-optimized-bytecode-size=15000",
		// The middle compiler takes only functions that have been called this often. For loops nothing changes
		// (docs/development/adr/0015).
		"--invocation-count-for-maglev=4000",
		// Loops of WebAssembly that run no other code, as one of memory.fill, look for a termination only when this
		// budget is used up: V8's default takes seconds. As for JavaScript, the isolate's own thread compiles. A memory
		// reserves as much address space as it may have at most: the largest limit of a heap (docs/development/adr/0088).
		"--wasm-tiering-budget=20000", "--wasm-sync-tier-up", "--wasm-max-mem-pages=8192",
		"--wasm-max-table-size=1000000",
		// Features of ECMAScript 2025 and later that V8 has ready. Its next versions enable them by default.
		"--js-float16array", "--js-explicit-resource-management",
		fmt.Sprintf("--max-opt=%d", with),
	} {
		v8.SetFlags(f)
	}
	got := C.GoString(C.v8x_version())
	// v8go adds its own suffix to V8's version.
	if len(got) < len(Version) || got[:len(Version)] != Version {
		return fmt.Errorf("v8x: linked with V8 %s, but declared for %s: see docs/development/adr/0002", got, Version)
	}
	if f := reflect.TypeOf(v8.Isolate{}).Field(0); f.Name != "ptr" || f.Offset != 0 {
		return errors.New("v8x: v8go.Isolate does not begin with the pointer to V8's isolate")
	}
	// The first isolate starts V8 and keeps its read-only heap alive: later isolates are made faster.
	v8.NewIsolate()
	C.v8x_init()
	return nil
}
