package endless

import (
	"fmt"
	"strings"
)

// before declares what bodies use. r takes their results, so that no compiler leaves them out.
const before = `let r, n = 7, x = 1.5, big = 12345678901234567890n;
const s = "the quick brown fox jumps over the lazy dog", u = "zażółć gęślą jaźń", a = [5, 3, 1, 4, 2], d = [1.5, 2.5, 3.5];
const objects = [{ k: 1 }, { k: 2 }, { k: 3, l: 4 }], o = { p: 1, q: "two", r: [3] }, m = new Map([[1, 2], ["a", "b"]]), set = new Set([1, 2, 3]);
const bytes = new Uint8Array(64), doubles = new Float64Array(16), view = new DataView(new ArrayBuffer(32)), weak = new WeakMap(), symbol = Symbol("x");
const add = (a, b) => a + b, gen = function* () { yield 1; yield 2 }, proxy = new Proxy({}, { get: () => 1, has: () => true }), date = new Date(0);
class Base { constructor(v) { this.v = v } get twice() { return this.v * 2 } same() { return this } } class Derived extends Base { #p = 1; get p() { return this.#p } }
`

// bodies are statements that allocate at most what the next collection frees, and never throw.
var bodies = makeBodies()

func makeBodies() []string {
	var list []string
	lengths := []string{"0", "1", "7", "100", "1000", "4000", "4999", "5001", "20000"}
	list = append(list, each(`r = new Array($)`, lengths...)...)
	list = append(list, each(`r = new Array($).fill(1.5)`, lengths...)...)
	list = append(list, each(`r = new Array(1000).fill($)`, "0", `"x"`, "undefined", "o")...)
	list = append(list, each(`r = Array.from({ length: $ })`, "1", "100", "1000")...)
	list = append(list, each(`r = new $(100)`, "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array",
		"Int32Array",
		"Uint32Array", "Float16Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "ArrayBuffer")...)
	list = append(list, each(`r = s.$`, `startsWith("the q")`, `startsWith("quick", 4)`, `endsWith("dog")`,
		`includes("fox")`, `indexOf("lazy")`,
		`lastIndexOf("o")`, `slice(4, 9)`, `substring(2)`, `at(-1)`, `charAt(3)`, `charCodeAt(n)`, `codePointAt(n)`,
		`padStart(60)`, `padEnd(60, "ab")`, `repeat(3)`, `split(" ")`, `split("")`, `trim()`, `toUpperCase()`,
		`toLowerCase()`,
		`replace("fox", "cat")`, `replaceAll("o", "0")`, `replace(/o/g, c => c)`, `match(/[aeiou]/g)`, `search(/z/)`,
		`localeCompare(u)`, `normalize("NFD")`, `concat(u)`, `isWellFormed()`, `length`, `matchAll(/o/g).next()`)...)
	list = append(list, each(`r = u.$`, `toUpperCase()`, `normalize("NFKD")`, `indexOf("ź")`, `startsWith("zaż")`,
		`split("")`)...)
	list = append(list, each(`r = a.$`, `indexOf(4)`, `includes(9)`, `lastIndexOf(5)`, `join()`, `slice()`, `slice(1, 3)`,
		`concat(d)`, `map(v => v * 2)`,
		`filter(v => v > 2)`, `reduce(add)`, `reduceRight(add)`, `forEach(v => { n = v })`, `every(v => v > 0)`,
		`some(v => v > 9)`,
		`find(v => v === 4)`, `findIndex(v => v === 4)`, `findLast(v => v === 4)`, `flat()`, `flatMap(v => [v, v])`,
		`toSorted()`, `toReversed()`, `with(0, 1)`, `toSpliced(1, 1)`, `entries().next()`, `keys().next()`, `at(-1)`,
		`sort((a, b) => a - b)`, `reverse()`, `fill(1)`, `copyWithin(0, 2)`, `push(1); a.pop()`, `unshift(1); a.shift()`,
		`splice(1, 1, 9)`)...)
	list = append(list, each(`r = d.$`, `indexOf(2.5)`, `map(v => v + 0.5)`, `slice()`, `fill(1.5)`, `sort()`,
		`includes(NaN)`, `join("-")`)...)
	list = append(list, each(`r = objects.$`, `map(o => o.k)`, `find(o => o.l)`, `filter(o => o.k > 1)`,
		`flatMap(o => [o, o])`)...)
	list = append(list, each(`r = bytes.$`, `fill(n)`, `subarray(1, 9)`, `slice(0, 32)`, `set(a)`, `indexOf(9)`,
		`copyWithin(0, 8)`, `sort()`,
		`reverse()`, `map(v => v + 1)`, `join()`, `includes(3)`, `reduce(add)`)...)
	list = append(list, each(`r = doubles.$`, `fill(x)`, `slice()`, `sort()`, `map(Math.sqrt)`, `at(3)`)...)
	return append(list, moreBodies()...)
}

// each returns a statement for each word, which stands where $ is.
func each(template string, words ...string) []string {
	var list []string
	for _, w := range words {
		list = append(list, strings.ReplaceAll(template, "$", w))
	}
	return list
}

func moreBodies() []string {
	var list []string
	list = append(list, each(`r = view.$`, `getUint32(0)`, `setFloat64(8, x)`, `getBigInt64(0)`,
		`setInt16(2, n, true)`)...)
	list = append(list, each(`x = Math.$`, `sin(x)`, `cos(x)`, `tan(x)`, `atan2(x, n)`, `exp(1)`, `log(n)`, `log2(n)`,
		`pow(x, 0.5)`, `sqrt(n)`, `cbrt(n)`,
		`hypot(3, 4)`, `floor(x)`, `round(x)`, `trunc(x)`, `abs(x)`, `min(x, n)`, `max(...a)`, `random()`, `imul(n, 3)`,
		`clz32(n)`,
		`fround(x)`, `sign(x)`)...)
	list = append(list, each(`r = Object.$`, `keys(o)`, `values(o)`, `entries(o)`, `assign({}, o)`, `freeze({ a: 1 })`,
		`create(null)`,
		`fromEntries(m)`, `getOwnPropertyNames(o)`, `getOwnPropertyDescriptor(o, "p")`, `is(x, n)`, `groupBy(a, v => v & 1)`,
		`defineProperty({}, "z", { value: 1 })`, `getPrototypeOf(o)`, `hasOwn(o, "p")`)...)
	list = append(list, each(`r = Reflect.$`, `ownKeys(o)`, `has(o, "p")`, `get(o, "q")`, `apply(add, null, [1, 2])`,
		`construct(Base, [1])`)...)
	list = append(list, each(`r = $`, `JSON.stringify(o)`, `JSON.parse("[1,2,{\"a\":3}]")`, `String.raw`,
		`parseInt("123")`,
		`parseFloat("1.5e3")`, `Number("0x10")`, `String(x)`, `x.toFixed(2)`, `n.toString(2)`, `x.toPrecision(5)`,
		`Number.isInteger(x)`,
		`encodeURIComponent(u)`, `decodeURIComponent("%41%42")`, `BigInt.asUintN(64, big)`, `big * big`, `big.toString()`,
		`big % 1000000007n`, `2n ** 200n`, `[...s]`, `[...a, ...d]`, `[...m]`, `[...set]`, `[...gen()]`, `{ ...o }`,
		`new Map(m)`,
		`new Set(a)`, `m.get("a")`, `m.set(1, n)`, `m.has(9)`, `set.add(2)`, `set.union(set)`, `set.isSubsetOf(set)`,
		`weak.set({}, 1)`, `new WeakRef(o)`, `new Base(1).twice`, `new Derived(1).p`, `new Derived(2).same()`,
		`proxy.anything`,
		`"k" in proxy`, `Symbol.for("k")`, `symbol.description`, `date.getTime()`, `date.toISOString()`,
		`new Date(n).getUTCDay()`,
		`Intl.getCanonicalLocales("en")`, `/(\d+)-(\w+)/.exec("12-ab")`, `/^(?<y>\d{4})$/.test("2024")`, `/a|b|c/y.test(s)`,
		"`${n}:${x}:${s}`", `s + n`, `s < u`, `s === u`, `typeof n`, `n ** 2`, `n / 3`, `n % 5`, `n << 3`, `n >>> 1`,
		`n & 255`, `~n`, `-x`,
		`n ?? 1`, `o?.p?.z`, `void 0`, `(() => n)()`, `add(n, x)`, `add.call(null, 1, 2)`, `add.apply(null, [1, 2])`,
		`add.bind(null, 1)(2)`, `new Error("x")`, `Promise.resolve(n)`, `Array.isArray(a)`, `Array.of(1, 2)`,
		`Iterator.from(a).map(v => v).toArray()`, `a.values().take(2).toArray()`)...)
	for _, end := range []int{2, 4, 10, 100, 1000, 4999, 5000, 5001, 20000} {
		list = append(list, each(fmt.Sprintf(`for (let j = 0; j < %d; j++) $`, end), `n = j & 7`, `x = x * 1.0000001`)...)
	}
	list = append(list, each(`$`, `for (const v of a) n = v`, `for (const v of s) r = v`, `for (const k in o) r = k`,
		`for (const [k, v] of m) r = v`,
		`for (const v of gen()) n = v`, `for (const b of bytes) n = b`, `let [p, ...q] = a; r = q`,
		`let { p, ...q } = o; r = q`,
		`try { throw n } catch (e) { n = e }`, `try { null.x } catch { n = 7 }`, `try { new Array(-1) } catch { n = 7 }`,
		`switch (n) { case 1: r = 1; break; case 7: r = 7; break; default: n = 7 }`, `o.p++`, `o["p"] = n`, `a[2] = n`, `d[1] = x`,
		`bytes[n & 63] = n`, `doubles[n & 15] = x`, `let j = 64; while (j--) n = j & 7`,
		`let j = 0; do n = j & 7; while (++j < 500)`,
		`delete o.none`, `o.none = 1; delete o.none`, `a.length = 5`, `n++; n &= 1023`, `;`)...)
	return list
}
