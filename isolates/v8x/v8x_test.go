package v8x

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a runtime of a few lines: it sends back the arguments of each call.
const echo = `host.entry((op, ...args) => {
	if (op === 1) { internal.ns = args[0]; host.send(1, Object.keys(internal.ns)); return }
	if (op === 51) { const b = new Uint8Array(8); host.random(b); host.send(3, internal.check(), b, String(Math.random())); return }
	if (op === 50) { host.send(2, typeof internal.ns.default(...args)); return }
	host.send(op, ...args)
})`

// keep is a graph, far deeper than the 32 objects that V8 writes at once, with every kind of object that a runtime may
// keep.
const keep = `
let graph = null;
for (let i = 0; i < 100; i++) {
	class C extends Map { #a = i; static of(c) { return c.#a } }
	graph = { next: graph, C, c: new C([[i, {}]]), bytes: new Uint8Array(64).fill(i), empty: new ArrayBuffer(0), list: [i, "s" + i],
		weak: new WeakMap([[{}, i]]), bound: host.send.bind(null, i), proxy: new Proxy({}, {}), then: Promise.resolve(i), error: new Error("e" + i),
		symbol: Symbol("s" + i), big: 10n ** 50n, none: { __proto__: null, ["k" + i]: 1.5 }, gen: function* () { yield i } };
}
internal.check = () => {
	let n = 0;
	for (let g = graph; g; g = g.next, n++) {
		const i = g.list[0];
		if (g.C.of(g.c) !== i || !g.c.has(i) || g.bytes[63] !== i || g.none["k" + i] !== 1.5 || g.gen().next().value !== i ||
			g.error.message !== "e" + i) throw new Error("at " + i);
	}
	return n;
}`

// start makes the snapshot of all tests.
var start = sync.OnceValue(func() error {
	if err := Start(AllCompilers); err != nil {
		return err
	}
	return Snapshot(testFiles, nil)
})

// testFiles is the runtime of all tests.
var testFiles = []File{{Name: "keep.js", Text: keep}, {Name: "echo.js", Text: echo}}

func newContext(t testing.TB, l Limits) (*Isolate, *Context) {
	t.Helper()
	runtime.LockOSThread()
	require.NoError(t, start())
	iso := NewIsolate(l)
	c, err := iso.NewContext(func(in []byte) ([]byte, error) {
		q := ReadCommands(in)
		q.Next()
		return AnswerString("<" + q.Text() + ">"), nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); iso.Close() })
	return iso, c
}

var roomy = Limits{Heap: 64 << 20, Buffers: 64 << 20}

func TestSnapshot(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		iso, first := newContext(t, roomy)
		second, err := iso.NewContext(nil)
		require.NoError(t, err)
		defer second.Close()
		for _, c := range []*Context{first, second} {
			var call Call
			r := c.Call(call.Reset(51).Bytes(), nil)
			require.NoError(t, r.Err)
			in := ReadCommands(r.Out)
			in.Next()
			require.Equal(t, 100., in.Number())
			seen[string(in.View())] = true
			seen[in.Text()] = true
		}
	}
	require.Len(t, seen, 12) // nothing random is part of the snapshot
}

// The effects of warmUp on its context stay there, except for the code that V8 compiled.
func TestSnapshotAfterARehearsal(t *testing.T) {
	_, before := newContext(t, roomy)
	files := []File{
		{Name: "counter.js", Text: `let n = 0; internal.count = () => { n++; globalThis.warmedUp = true; return n }`},
		{Name: "entry.js", Text: `host.entry((op, ...args) => { if (op === 1) return; host.send(op, internal.count(), typeof warmedUp) })`},
	}
	defer func() { require.NoError(t, Snapshot(testFiles, nil)) }() // as before, for the other tests
	warmUps := 0
	require.NoError(t, Snapshot(files, func(c *Context) {
		warmUps++
		state, r := c.Module(Source{Name: "m.js", Text: "export default 1"})
		require.Equal(t, Evaluated, state, "%v", r.Err)
		for i := range 3 {
			n, _ := counted(t, c)
			require.Equal(t, float64(i+1), n)
		}
	}))
	require.Equal(t, 2, warmUps, "for the files that run at once, and for those of features")
	_, c := newContext(t, roomy)
	n, _ := counted(t, c)
	require.Equal(t, 1., n)
	_, other := newContext(t, roomy)
	n, kind := counted(t, other)
	require.Equal(t, 1., n)
	require.Equal(t, "boolean", kind) // count has run

	// If the runtime does not run, warmUp is not called. The error is the snapshot's.
	err := Snapshot([]File{{Name: "bad.js", Text: "throw new Error('no')"}}, func(*Context) { t.Error("warmedUp") })
	require.ErrorContains(t, err, "bad.js:1:1: Uncaught Error: no")

	var call Call
	require.NoError(t, before.Call(call.Reset(7).Bytes(), nil).Err)
}

// counted calls the runtime of TestSnapshotAfterARehearsal.
func counted(t *testing.T, c *Context) (n float64, kind string) {
	t.Helper()
	var call Call
	r := c.Call(call.Reset(60).Bytes(), nil)
	require.NoError(t, r.Err)
	in := ReadCommands(r.Out)
	in.Next()
	return in.Number(), in.Text()
}

func TestSnapshotOfABadRuntime(t *testing.T) {
	require.NoError(t, start())
	for text, want := range map[string]string{
		`host.entry(() => {}`:      "bad.js:1:19: Uncaught SyntaxError: missing ) after argument list",
		"\n throw new Error('no')": "bad.js:2:2: Uncaught Error: no",
		``:                         "host.entry was not called",
		`internal.b = new ArrayBuffer(1); host.entry(() => {})`:                     "ArrayBuffer",
		`internal.b = new Uint8Array(65); host.entry(() => {})`:                     "ArrayBuffer",
		`internal.b = new DataView(new Uint8Array(8).buffer); host.entry(() => {})`: "ArrayBuffer",
	} {
		require.ErrorContains(t, Snapshot([]File{{Name: "bad.js", Text: text}}, nil), want)
	}
}

func TestValuesCrossBothWays(t *testing.T) {
	_, c := newContext(t, roomy)
	var call Call
	call.Reset(7).Null().Bool(true).Bool(false).Number(-1.5).String("grüße\x00 €😀").Blob([]byte{0, 1, 255}).Body().
		Strings([]string{"a", ""})
	r := c.Call(call.Bytes(), []byte("body"))
	require.NoError(t, r.Err)
	in := ReadCommands(r.Out)
	op, ok := in.Next()
	require.True(t, ok)
	require.Equal(t, 7, op)
	require.Nil(t, in.View())
	require.True(t, in.Bool())
	require.False(t, in.Bool())
	require.Equal(t, -1.5, in.Number())
	require.Equal(t, "grüße\x00 €😀", in.Text())
	require.Equal(t, []byte{0, 1, 255}, in.View())
	require.Equal(t, "body", in.Text())
	require.Equal(t, []string{"a", ""}, in.Strings())
	_, ok = in.Next()
	require.False(t, ok)
	require.NoError(t, in.Err())
}

func TestModule(t *testing.T) {
	_, c := newContext(t, roomy)
	state, r := c.Module(Source{Name: "m.js", Text: `export default () => 1; export const x = await Promise.resolve(2)`})
	require.Equal(t, Evaluated, state)
	in := ReadCommands(r.Out)
	in.Next()
	require.ElementsMatch(t, []string{"default", "x"}, in.Strings())
}

func TestModuleErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		state ModuleState
		want  string
	}{
		"syntax":  {"let a = 1;\nlet b = ;", CompileError, "m.js:2:9: Uncaught SyntaxError: Unexpected token ';'"},
		"import":  {`import x from "y"`, CompileError, `cannot import "y"`},
		"throws":  {`throw new Error("no")`, Rejected, ""},
		"pending": {`await new Promise(() => {})`, Pending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := newContext(t, roomy)
			state, r := c.Module(Source{Name: "m.js", Text: tc.text})
			require.Equal(t, tc.state, state)
			if tc.want != "" {
				require.ErrorContains(t, r.Err, tc.want)
			}
		})
	}
}

func TestTerminate(t *testing.T) {
	iso, c := newContext(t, roomy)
	state, _ := c.Module(Source{Name: "m.js", Text: `export default () => { for (;;); }`})
	require.Equal(t, Evaluated, state)
	stop := time.AfterFunc(20*time.Millisecond, iso.Terminate)
	defer stop.Stop()
	var call Call
	r := c.Call(call.Reset(50).Bytes(), nil)
	require.True(t, r.Terminated)
}

func TestLimits(t *testing.T) {
	for name, body := range map[string]string{
		"arrays":    `const a = []; for (;;) a.push(new Array(1000).fill(1.5))`,
		"strings":   `let a = []; for (let i = 0;; i++) a.push("x".repeat(1000) + i)`,
		"microtask": `const keep = []; const f = () => { keep.push(new Array(1000).fill(1.5)); Promise.resolve().then(f) }; f()`,
	} {
		t.Run(name, func(t *testing.T) {
			iso, c := newContext(t, Limits{Heap: 32 << 20, Buffers: 32 << 20})
			c.Module(Source{Name: "m.js", Text: `export default () => {` + body + `}`})
			var call Call
			c.Call(call.Reset(50).Bytes(), nil)
			require.Equal(t, HeapLimit, iso.Flags())
		})
	}
	t.Run("buffers", func(t *testing.T) {
		iso, c := newContext(t, Limits{Heap: 32 << 20, Buffers: 32 << 20})
		c.Module(Source{Name: "m.js", Text: `export default () => { const a = []; try { for (;;) a.push(new Uint8Array(1 << 20)) } catch (e) { if (e instanceof RangeError && a.length > 20 && a.length < 33) return "limited"; throw e } }`})
		var call Call
		r := c.Call(call.Reset(50).Bytes(), nil)
		require.NoError(t, r.Err)
		in := ReadCommands(r.Out)
		in.Next()
		require.Equal(t, "string", in.Text())
		require.Zero(t, iso.Flags())
	})
}

// V8 allocates the memory of a resizable buffer itself. What the buffer has counts, not what it may have.
func TestResizableBuffersAreCharged(t *testing.T) {
	iso, c := newContext(t, Limits{Heap: 32 << 20, Buffers: 32 << 20})
	c.Module(Source{Name: "m.js", Text: `export default () => {
		let n = 0;
		for (let i = 0; i < 100; i++) n += new ArrayBuffer(0, { maxByteLength: 4 << 20 }).maxByteLength; // the collector keeps up
		if (n !== 400 << 20) return;
		const a = [];
		try { for (;;) a.push(new ArrayBuffer(1 << 19, { maxByteLength: 1 << 23 })), a[a.length - 1].resize(1 << 20) } catch (e) {
			if (e instanceof RangeError && a.length > 20 && a.length < 33) return "limited";
			throw e;
		}
	}`})
	var call Call
	r := c.Call(call.Reset(50).Bytes(), nil)
	require.NoError(t, r.Err)
	in := ReadCommands(r.Out)
	in.Next()
	require.Equal(t, "string", in.Text())
	require.Zero(t, iso.Flags())
}

func BenchmarkCall(b *testing.B) {
	_, c := newContext(b, roomy)
	var call Call
	body := make([]byte, 1024)
	for b.Loop() {
		call.Reset(7).Number(1).String("POST").String("http://x.y.z/").Null().Body()
		r := c.Call(call.Bytes(), body)
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
