package isolates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// console.log writes for most values the same text as Node.
func TestConsoleText(t *testing.T) {
	t.Parallel()
	cases := []struct{ code, text string }{
		{`1, -0, NaN, 10n, "s", Symbol("y"), undefined, null, true`, "1 -0 NaN 10n s Symbol(y) undefined null true"},
		{`["it's", 'a"b\'c', "a\nb\t\\", "\x7f"]`, "[ \"it's\", `a\"b'c`, 'a\\nb\\t\\\\', '\\x7f' ]"},
		{`{}, [], { a: 1, "b-c": "x", 5: null, [Symbol("k")]: 1, $: 2 }`, `{} [] { '5': null, a: 1, 'b-c': 'x', '$': 2, [Symbol(k)]: 1 }`},
		{`{ a: { b: { c: { d: 1 } } } }`, `{ a: { b: { c: [Object] } } }`},
		{`{ a: { b: { c: {}, d: [], e: new Map(), f: [1], g: new Set([1]) } } }`, `{ a: { b: { c: {}, d: [], e: Map(0) {}, f: [Array], g: [Set] } } }`},
		{`[1, , , 4], new Array(3), [, 1]`, `[ 1, <2 empty items>, 4 ] [ <3 empty items> ] [ <1 empty item>, 1 ]`},
		{`Object.assign([1, 2], { foo: "bar" })`, `[ 1, 2, foo: 'bar' ]`},
		{`[1, 22, 333, 4, 5, 6, 7]`, "[\n    1, 22, 333, 4, 5,\n  ...]"},
		{`new Map([["a", 1], [{ k: 1 }, [2]]]), new Set([1, "b"])`, `Map(2) { 'a' => 1, { k: 1 } => [ 2 ] } Set(2) { 1, 'b' }`},
		{`new WeakMap(), new WeakSet(), new Date(0), new Date(NaN), /a\/b/gi`, `WeakMap { <items unknown> } WeakSet { <items unknown> } 1970-01-01T00:00:00.000Z Invalid Date /a\/b/gi`},
		{`new Number(3), new String("ab"), Object(5n), Object(Symbol("q"))`, `[Number: 3] [String: 'ab'] [BigInt: 5n] [Symbol: Symbol(q)]`},
		{`Object.assign(new String("ab"), { x: 1 }), Object.assign(new Date(0), { x: 1 })`, `[String: 'ab'] { x: 1 } 1970-01-01T00:00:00.000Z { x: 1 }`},
		{`new Uint8Array([1, 2]), new Float64Array(1), new ArrayBuffer(2)`, `Uint8Array(2) [ 1, 2 ] Float64Array(1) [ 0 ] ArrayBuffer { [Uint8Contents]: <00 00>, byteLength: 2 }`},
		{`new DataView(new ArrayBuffer(1))`, "DataView {\n  byteLength: 1,\n  byteOffset: 0,\n  buffer: ArrayBuffer { [Uint8Contents]: <00>, byteLength: 1 }\n}"},
		{`Promise.resolve(5), new Promise(() => {}), Promise.reject(1)`, `Promise { 5 } Promise { <pending> } Promise { <rejected> 1 }`},
		{`function f() {}, () => {}, async () => {}, function* g() {}`, `[Function: f] [Function (anonymous)] [AsyncFunction (anonymous)] [GeneratorFunction: g]`},
		{`class A {}, class extends Map {}, Object.assign(() => {}, { a: 1 })`, `[class A] [class (anonymous) extends Map] [Function (anonymous)] { a: 1 }`},
		{`new (class A { x = 1; #p = 2; get g() { return 1 } })(), new (class {})(), Object.create(null)`, `A { x: 1 } {} [Object: null prototype] {}`},
		{`{ get a() { return 1 }, set b(v) {}, get c() { return 1 }, set c(v) {} }`, `{ a: [Getter], b: [Setter], c: [Getter/Setter] }`},
		{`(() => { const c = { n: 1 }; c.self = c; return c })()`, `<ref *1> { n: 1, self: [Circular *1] }`},
		{`new Proxy({ a: 1 }, { get() { throw 1 } }), new Proxy(function f() {}, {})`, `{ a: 1 } [Function: f]`},
		{`(() => { const e = new Error("m"); e.stack = "Error: m\n    at x"; return e })()`, "Error: m\n    at x"},
		{`{ e: (() => { const e = new TypeError("m", { cause: "c" }); e.stack = "TypeError: m\n    at x"; e.code = 5; return e })() }`, "{\n  e: TypeError: m\n      at x {\n    [cause]: 'c',\n    code: 5\n  }\n}"},
		{`(() => { const e = new AggregateError([1], "m"); e.stack = "AggregateError: m"; return e })()`, `AggregateError: m { [errors]: [ 1 ] }`},
		{`{ [Symbol.toStringTag]: "T", a: 1 }, Math`, `{ a: 1, [Symbol(Symbol.toStringTag)]: 'T' } Object [Math] {}`},
		{`new URLSearchParams("a=1&b=2"), new Headers({ a: "b" })`, `URLSearchParams { 'a' => '1', 'b' => '2' } Headers { a: 'b' }`},
		{`new URL("http://u:p@h:81/x")`, "URL {\n  href: 'http://u:p@h:81/x',\n  origin: 'http://h:81',\n  protocol: 'http:',\n  username: 'u',\n  password: 'p',\n  host: 'h:81',\n  hostname: 'h',\n  port: '81',\n  pathname: '/x',\n  search: '',\n  hash: ''\n}"},
		{`"%s|%s|%s|%s", "x", { a: { b: 1 } }, Symbol("q"), -0`, `x|{ a: [Object] }|Symbol(q)|-0`},
		{`"%d|%i|%f|%d|%i", "1.5", "2.7", "3.5x", 5n, {}`, `1.5|2|3.5|5n|NaN`},
		{`"%o %O %c%% %x", [1], { a: 1 }, "css", "rest"`, `[ 1 ] { a: 1 } % %x rest`},
		{`"%s", "%s", "a"`, `%s a`}, {`"100%"`, `100%`}, {`"%s"`, `%s`}, {`"a%"  , 1`, `a% 1`},
	}
	var code strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&code, "console.log(%s);\n", c.code)
	}
	b := newBench(t)
	b.cpu = ample
	o := b.run(worker("w", "export default { task() { "+code.String()+" } }"), task("1"))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	lines := b.lines()
	for i, c := range cases {
		if strings.HasSuffix(c.text, "...]") { // compare only the beginning
			continue
		}
		require.Equal(t, c.text, lines[i], c.code)
	}
}

func TestConsoleListsInColumns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	b.task(`export default { task() {
		console.log(Array.from({ length: 14 }, (_, i) => i * 50));
		console.log(["alpha", "b", "gamma", "d", "epsilon", "z", "eta"]);
		console.log(Array.from({ length: 102 }, () => 1).slice(0, 102).length, Array(7).fill("x".repeat(30)).length);
		console.log(Array.from({ length: 102 }, () => 1));
	} }`, "1")
	lines := b.lines()
	require.Equal(t, "[\n    0,  50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550,\n  600, 650\n]", lines[0])
	require.Equal(t, "[\n  'alpha',   'b',       'gamma',   'd',       'epsilon', 'z',\n  'eta'\n]", lines[1])
	require.True(t, strings.HasSuffix(lines[3], "  1, 1, 1, 1,\n  ... 2 more items\n]"), lines[3])
}

// A table has at most 100 rows, and is drawn at once, however much data there is.
func TestConsoleTablesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	b.task(`export default { task() {
		const list = Array.from({ length: 150 }, (_, i) => i), wide = Object.fromEntries(Array.from({ length: 99 }, (_, i) => ["k" + i, "x".repeat(500)]));
		console.table(list); console.table(new Map(list.map((i) => [i, i]))); console.table(new Set(list)); console.table(new Set(list.slice(0, 100))); console.table([wide]);
		console.table(new Set(Array.from({ length: 1e4 }, (_, i) => i))); console.table(new Uint8Array(8 << 20)); console.table([new Uint8Array(8 << 20), new String("x".repeat(8 << 20))]);
	} }`, "1")
	lines := b.lines()
	for _, i := range []int{0, 1, 2} {
		require.Contains(t, lines[i], "99 ")
		require.True(t, strings.HasSuffix(lines[i], "\n... 50 more rows"), lines[i])
	}
	require.True(t, strings.HasSuffix(lines[3], "┘"))
	for _, l := range lines {
		require.LessOrEqual(t, len([]rune(l)), 8192)
	}
}

// The methods of the console write these lines, in this order.
func TestConsoleMethods(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	b.task(`export default { task() {
		console.assert(true, "x"); console.assert(false); console.assert(0, "a %d", 1); console.assert(null, { a: 1 });
		console.count(); console.count("x"); console.count(); console.countReset(); console.count(); console.countReset("none"); console.count(undefined);
		console.group("g", 1); console.log("in\nside"); console.groupCollapsed(); console.log("deep"); console.groupEnd(); console.groupEnd(); console.groupEnd(); console.log("out");
		console.dir({ a: { b: { c: { d: { e: 1 } } } } }, { depth: 0 }); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: null }); console.dir([1], { get depth() { throw 1 } });
		console.timeEnd("none"); console.timeLog("none"); console.time("t"); console.time("t"); console.timeEnd("t");
		console.table([{ a: 1, b: "x" }, { a: 2, get c() { throw 1 } }]); console.table(["p", "q"]); console.table(new Map([["k", 1]])); console.table(new Set(["v"]));
		console.table([{ a: 1, b: 2 }], ["b"]); console.table(5); console.table("text"); console.table([[1, 2]]);
	} }`, "1")
	lines := b.lines()
	require.Equal(t, []string{
		"Assertion failed", "Assertion failed: a 1", "Assertion failed: { a: 1 }",
		"default: 1", "x: 1", "default: 2", "default: 1", "Count for 'none' does not exist", "default: 2",
		"g 1", "  in\n  side", "    deep", "out",
		"{ a: [Object] }", "{ a: { b: { c: { d: 1 } } } }", "[ 1 ]",
		"Timer 'none' does not exist", "Timer 'none' does not exist", "Timer 't' already exists",
	}, lines[:19])
	require.Regexp(t, `^t: \d+\.\dms$`, lines[19])
	require.Equal(t, []string{
		"┌─────────┬───┬─────┬──────────┐\n│ (index) │ a │ b   │ c        │\n├─────────┼───┼─────┼──────────┤\n│ 0       │ 1 │ 'x' │          │\n│ 1       │ 2 │     │ [Getter] │\n└─────────┴───┴─────┴──────────┘",
		"┌─────────┬────────┐\n│ (index) │ Values │\n├─────────┼────────┤\n│ 0       │ 'p'    │\n│ 1       │ 'q'    │\n└─────────┴────────┘",
		"┌───────────────────┬─────┬────────┐\n│ (iteration index) │ Key │ Values │\n├───────────────────┼─────┼────────┤\n│ 0                 │ 'k' │ 1      │\n└───────────────────┴─────┴────────┘",
		"┌───────────────────┬────────┐\n│ (iteration index) │ Values │\n├───────────────────┼────────┤\n│ 0                 │ 'v'    │\n└───────────────────┴────────┘",
		"┌─────────┬───┐\n│ (index) │ b │\n├─────────┼───┤\n│ 0       │ 2 │\n└─────────┴───┘",
		"5", "text",
		"┌─────────┬───┬───┐\n│ (index) │ 0 │ 1 │\n├─────────┼───┼───┤\n│ 0       │ 1 │ 2 │\n└─────────┴───┴───┘",
	}, lines[20:])
}

// Groups, counts and timers of an event do not affect another event, in any mode.
func TestConsoleStateIsAnEvents(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `console.group("module"); export default { async fetch() {
			console.log("first");
			console.group("mine"); console.count(); console.time("t");
			await new Promise((done) => setTimeout(done, 3));
			console.log("last");
			return new Response("ok");
		} }`)
		var all []*outcome
		for range 4 {
			all = append(all, b.start(w, fetch("GET", "http://x/", "")))
		}
		for _, o := range all {
			o.wait(t, o.ended)
		}
		seen := map[string]int{}
		for _, line := range b.lines() {
			seen[line]++
		}
		delete(seen, "module")
		require.Equal(t, map[string]int{"first": 4, "mine": 4, "  default: 1": 4, "  last": 4}, seen)
	})
}
