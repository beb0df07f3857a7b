package v8x

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/endless"
)

// asText writes bytes as JavaScript.
func asText(b []byte) string {
	return "new Uint8Array([" + strings.Trim(strings.ReplaceAll(fmt.Sprintf("%d", b), " ", ","), "[]") + "])"
}

// admit answers that V8 may compile any module.
func admit(in []byte) ([]byte, error) {
	q := ReadCommands(in)
	if op, _ := q.Next(); op != AskWasm {
		return AnswerNull(), nil
	}
	code := q.View()
	return AnswerWasm(sha256.Sum256(code), uint64(len(code))*8, uint64(len(code))*8, 4), nil
}

// withWasm makes an isolate whose module is that code.
func withWasm(t testing.TB, l Limits, host HostFunc, code string) (*Isolate, *Context) {
	t.Helper()
	runtime.LockOSThread()
	require.NoError(t, start())
	iso := NewIsolate(l)
	c, err := iso.NewContext(host)
	require.NoError(t, err)
	state, r := c.Module(Source{Name: "m.js", Text: code})
	require.NoError(t, r.Err)
	require.Equal(t, Evaluated, state)
	return iso, c
}

func closeBoth(iso *Isolate, c *Context) {
	c.Close()
	iso.Close()
}

// V8 compiles nothing that Go has not admitted, whichever of its functions is called.
func TestWasmNeedsTheHost(t *testing.T) {
	code := asText(endless.ModuleOf(0x01))
	iso, c := withWasm(t, roomy, func(in []byte) ([]byte, error) {
		require.EqualValues(t, AskWasm, in[0])
		return nil, errors.New("not today")
	}, `export default () => {
		try { new WebAssembly.Module(`+code+`) } catch (e) { throw new Error(e.constructor.name + " " + e.message) }
	}`)
	var call Call
	require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "CompileError WebAssembly.Module(): not today")
	closeBoth(iso, c)
	for _, api := range []string{"compile", "instantiate"} {
		iso, c = withWasm(t, roomy, admit, `let done = "pending"; export default () => {
			if (done !== "pending") throw new Error(done);
			WebAssembly.`+api+`(`+code+`).then(() => { done = "compiled" }, (e) => { done = e.message });
		}`)
		require.NoError(t, c.Call(call.Reset(50).Bytes(), nil).Err)
		require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "disallowed by embedder")
		closeBoth(iso, c)
	}
}

// Isolates share the code of a module, and each is charged for it until it is closed.
func TestWasmCodeIsShared(t *testing.T) {
	before := WasmBytes()
	bytes := []byte("\x00asm\x01\x00\x00\x00" + // run calls e.f
		"\x01\x04\x01\x60\x00\x00" + "\x02\x07\x01\x01e\x01f\x00\x00" + "\x03\x02\x01\x00" +
		"\x07\x07\x01\x03run\x00\x01" + "\x0a\x06\x01\x04\x00\x10\x00\x0b")
	code := `const b = ` + asText(bytes) + `; export default () => { let n = 0;
		for (let i = 0; i < 100; i++)
			new WebAssembly.Instance(new WebAssembly.Module(b), { e: { f: () => { n++ } } }).exports.run();
		if (n !== 100) throw new Error(n) }`
	var call Call
	one, c1 := withWasm(t, roomy, admit, code)
	require.NoError(t, c1.Call(call.Reset(50).Bytes(), nil).Err)
	require.EqualValues(t, 8*len(bytes), WasmBytes()-before)
	two, c2 := withWasm(t, roomy, admit, code)
	require.NoError(t, c2.Call(call.Reset(50).Bytes(), nil).Err)
	require.EqualValues(t, 8*len(bytes), WasmBytes()-before)
	closeBoth(one, c1)
	require.NoError(t, c2.Call(call.Reset(50).Bytes(), nil).Err)
	closeBoth(two, c2)
	require.Equal(t, before, WasmBytes())
}

// The code of modules is charged to the isolate: there is an end to it.
func TestWasmCodeIsCharged(t *testing.T) {
	iso, c := withWasm(t, Limits{Heap: 64 << 20, Buffers: 8 << 20}, func(in []byte) ([]byte, error) {
		q := ReadCommands(in)
		q.Next()
		return AnswerWasm(sha256.Sum256(q.View()), 1<<20, 1<<20, 1), nil
	}, `const keep = []; export default () => {
		for (let i = 0; i < 100; i++) {
			try { keep.push(new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 0, 2, 1, i]))) }
			catch (e) { throw new Error(i + " " + e.constructor.name + " " + e.message) }
		}
	}`)
	defer closeBoth(iso, c)
	var call Call
	require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err,
		"8 RangeError WebAssembly.Module(): the code of the module takes 2 MB of memory, more than the worker has left")
}

// Memories are charged for what they have, not for what they may have.
func TestWasmMemoryIsCharged(t *testing.T) {
	for name, code := range map[string]string{
		"memories without a maximum": `const keep = []; export default () => { let n = 0;
			try { for (; n < 5000; n++) keep.push(new WebAssembly.Memory({ initial: 16 })) } catch (e) { n = -n }
			throw new Error("count " + n) }`,
		"memories with a maximum": `const keep = []; export default () => { let n = 0;
			try { for (; n < 5000; n++) keep.push(new WebAssembly.Memory({ initial: 16, maximum: 32 })) } catch (e) { n = -n }
			throw new Error("count " + n) }`,
		"a memory that grows": `export default () => { const m = new WebAssembly.Memory({ initial: 0 }); let n = 0;
			try { for (; n < 5000; n++) m.grow(16) } catch (e) { n = -n }
			new Uint8Array(m.buffer).fill(1);
			throw new Error("count " + n) }`,
	} {
		t.Run(name, func(t *testing.T) {
			iso, c := withWasm(t, Limits{Heap: 64 << 20, Buffers: 64 << 20}, admit, code)
			var call Call
			err := c.Call(call.Reset(50).Bytes(), nil).Err
			require.Error(t, err)
			_, count, _ := strings.Cut(err.Error(), "count -")
			n, err := strconv.Atoi(count)
			require.NoError(t, err)
			require.InDelta(t, 64, n, 1)
			require.InDelta(t, 64<<20, iso.HeapBytes(), 8<<20)
			closeBoth(iso, c)
		})
	}
}

// Loops of WebAssembly end as those of JavaScript do. They run in a process that can be killed.
func TestWasmLoopsEnd(t *testing.T) {
	const seedOf = "V8X_WASM_SEED"
	if text := os.Getenv(seedOf); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		require.NoError(t, Start(AllCompilers))
		require.NoError(t, Snapshot(testFiles, nil))
		n := *loops
		if n == 0 {
			n = 320
		}
		var worst time.Duration
		for _, m := range endless.Modules(seed, n) {
			late, err := endsWasm(m.Bytes)
			require.NoError(t, err, m.Name)
			worst = max(worst, late)
			if late > hot {
				t.Logf("%s: ended %v after it was asked for", m.Name, late)
			}
		}
		t.Logf("%d loops, the last to end after %v", n, worst)
		return
	}
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$",
		"-loops="+strconv.Itoa(*loops))
	cmd.Env = append(os.Environ(), seedOf+"="+strconv.FormatUint(seed, 10))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// endsWasm runs the module on a thread of its own, and ends it. It returns how long that took, or why it could not be
// ended.
func endsWasm(module []byte) (late time.Duration, err error) {
	running, over := make(chan *Isolate, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		iso := NewIsolate(Limits{Heap: 64 << 20, Buffers: 64 << 20})
		defer iso.Close()
		c, err := iso.NewContext(admit)
		if err != nil {
			over <- err
			return
		}
		defer c.Close()
		_, r := c.Module(Source{Name: "m.js", Text: "const m = new WebAssembly.Module(" + asText(module) +
			"); export default () => { " + endless.Hot + " }"})
		if r.Err != nil {
			over <- r.Err
			return
		}
		running <- iso
		var call Call
		if r := c.Call(call.Reset(50).Bytes(), nil); !r.Terminated {
			over <- errors.Join(errors.New("it ended by itself"), r.Err)
			return
		}
		over <- nil
	}()
	var iso *Isolate
	select {
	case err := <-over:
		return 0, err
	case iso = <-running:
	}
	wait, given := hot, time.After(hot+patience)
	var asked time.Time
	for {
		select {
		case err := <-over:
			return time.Since(asked), err
		case <-given:
			return 0, errors.New("it does not end")
		case <-time.After(wait):
			if asked.IsZero() {
				asked = time.Now()
			}
			iso.Terminate() // again and again: before the call began it was without effect
			wait = 100 * time.Millisecond
		}
	}
}
