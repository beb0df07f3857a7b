package v8x

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v8 "rogchap.com/v8go"
)

// Bits of what V8's %GetOptimizationStatus returns.
const (
	statusOptimized = 1<<4 | 1<<5 | 1<<6 // by any compiler, by Maglev, by TurboFan
	statusBaseline  = 1 << 15            // by Sparkplug
)

// hotModule is a module whose default function calls others often, and throws how V8 has compiled any of them. There
// are many: Sparkplug waits until it has some code to compile at once.
var hotModule = func() string {
	var b strings.Builder
	b.WriteString("const all = []; let status = 0;")
	for i := range 40 {
		fmt.Fprintf(&b, `
			function hot%d(x) { let n = %d; for (let i = 0; i < 100; i++) n += i %% x; return n }
			all.push(() => { for (let i = 0; i < 3000; i++) hot%d(7); status |= %%GetOptimizationStatus(hot%d) })`, i, i, i, i)
	}
	b.WriteString(`; export default () => { for (const f of all) f(); throw new Error("status " + status) }`)
	return b.String()
}()

var statusIn = regexp.MustCompile(`status (\d+)`)

// status runs the default function of the context's module, and returns how V8 has compiled what it calls.
func status(t *testing.T, c *Context) int {
	t.Helper()
	var call Call
	r := c.Call(call.Reset(50).Bytes(), nil)
	require.Error(t, r.Err)
	m := statusIn.FindStringSubmatch(r.Err.Error())
	require.NotNil(t, m, "%v", r.Err)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// compiling is, in a child process, the value of --max-opt with which it starts V8.
const compiling = "V8X_COMPILERS"

// withNatives runs a test in processes that start V8 with functions such as %GetOptimizationStatus, one for each of
// these compilers. It returns those of this process, and false in the process that has started the others.
func withNatives(t *testing.T, each ...Compilers) (Compilers, bool) {
	t.Helper()
	if text := os.Getenv(compiling); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		v8.SetFlags("--allow-natives-syntax")
		require.NoError(t, Start(Compilers(n)))
		require.NoError(t, Snapshot(testFiles, nil))
		return Compilers(n), true
	}
	for _, with := range each {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), compiling+"="+strconv.Itoa(int(with)))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%d: %s", with, out)
	}
	return 0, false
}

// compiled runs the hot module in an isolate of its own, and returns how V8 has compiled its functions, and its code
// cache.
func compiled(t *testing.T, baseline bool, cache []byte) (how int, made []byte) {
	t.Helper()
	iso := NewIsolate(roomy)
	defer iso.Close()
	require.NoError(t, iso.Prepare()) // as prewarmed ones
	if baseline {
		iso.Baseline()
	}
	c, err := iso.NewContext(nil)
	require.NoError(t, err)
	defer c.Close()
	_, r := c.Module(Source{Name: "m.js", Text: hotModule, Cache: cache})
	require.NoError(t, r.Err)
	require.False(t, c.CacheRejected())
	how = status(t, c)
	return how, c.CodeCache()
}

// V8 optimizes hot functions in an isolate, and none in one of the same process that is baseline, also when its code
// cache comes from one where they were optimized.
func TestBaselineIsolates(t *testing.T) {
	if _, child := withNatives(t, AllCompilers); !child {
		return
	}
	for range 3 {
		how, cache := compiled(t, false, nil)
		require.NotZero(t, how&statusOptimized, "%b", how)
		require.NotEmpty(t, cache)
		how, _ = compiled(t, true, cache)
		require.Zero(t, how&statusOptimized, "%b", how)
		require.NotZero(t, how&statusBaseline, "%b", how)
	}
}

// A process with fewer compilers makes less of the same functions.
func TestCompilersOfAProcess(t *testing.T) {
	with, child := withNatives(t, Baseline, Interpreter)
	if !child {
		return
	}
	how, _ := compiled(t, false, nil)
	require.Zero(t, how&statusOptimized, "%b", how)
	require.Equal(t, with == Baseline, how&statusBaseline != 0, "%b", how)
	require.NoError(t, Start(with))
	require.ErrorContains(t, Start(AllCompilers), fmt.Sprintf("--max-opt=%d, and a process cannot change that to 3", with))
}
