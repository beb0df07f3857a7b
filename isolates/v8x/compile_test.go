//go:build !asan

// V8's compilers are not instrumented, and AddressSanitizer keeps the memory that they have freed.

package v8x

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hotFunctions is a module with many functions, each of which is called until the compilers take it.
func hotFunctions(functions, statements int) string {
	var b strings.Builder
	b.WriteString("const o = { a: 1, b: 2.5, c: { d: 3 } }; const all = [")
	for i := range functions {
		fmt.Fprintf(&b, "\nfunction f%d(x, y) { let r = 0; for (let k = 0; k < 3; k++) { ", i)
		for j := range statements {
			switch j % 4 {
			case 0:
				fmt.Fprintf(&b, "if (x * %d + y > r) r += o.a * x %% %d; else r -= o.b / y; ", j, j+2)
			case 1:
				fmt.Fprintf(&b, "for (let i = 0; i < 2; i++) r += o.c.d + i * %d; ", j)
			case 2:
				fmt.Fprintf(&b, "r = Math.floor(r / %d) + [x, y, r].length; ", j+1)
			case 3:
				fmt.Fprintf(&b, "r ^= (x << %d) | y; ", j%31)
			}
		}
		b.WriteString("} return r },")
	}
	b.WriteString("\n]; export default () => { for (;;) for (const f of all) for (let i = 0; i < 40; i++) f(i, 3) }")
	return b.String()
}

// A worker that has much compiled pays for it: other threads of the process take no CPU time for it, and what waits to
// be compiled takes no memory.
func TestCompilingIsCharged(t *testing.T) {
	const child = "V8X_COMPILES"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCompilingIsCharged$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	for _, size := range []struct{ functions, statements int }{{100, 100}, {20, 400}} {
		iso, c := newContext(t, Limits{Heap: 128 << 20, Buffers: 64 << 20})
		_, r := c.Module(Source{Name: "m.js", Text: hotFunctions(size.functions, size.statements)})
		require.NoError(t, r.Err)
		runtime.GC()
		process, own := usage(t, syscall.RUSAGE_SELF), usage(t, syscall.RUSAGE_THREAD)
		time.AfterFunc(1500*time.Millisecond, iso.Terminate)
		var call Call
		require.True(t, c.Call(call.Reset(50).Bytes(), nil).Terminated)
		process, own = usage(t, syscall.RUSAGE_SELF)-process, usage(t, syscall.RUSAGE_THREAD)-own
		t.Logf("%v: %v of the process, %v of the thread", size, process, own)
		// V8's collector has threads of its own.
		require.Less(t, process.Seconds(), 1.2*own.Seconds())
	}
	// Not ru_maxrss: a process begins with its parent's.
	most := memory(t, "VmHWM") >> 20
	t.Logf("at most %d MB", most)
	require.Less(t, most, 200)
}

// usage is the CPU time of the process or of this thread.
func usage(t *testing.T, who int) time.Duration {
	t.Helper()
	var r syscall.Rusage
	require.NoError(t, syscall.Getrusage(who, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
