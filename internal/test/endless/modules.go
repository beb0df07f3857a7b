package endless

import (
	"math/rand/v2"
	"strings"
)

// Hot runs the module m for ever, after it has called it so often that V8's top compiler has its code. V8 never
// replaces the code of a function of WebAssembly that is running.
const Hot = `const { run, stop } = new WebAssembly.Instance(m, { e: { f() {} } }).exports;
	if (stop) { stop.value = 1; for (let n = 0; n < 5000; n++) run(); stop.value = 0 }
	run();`

// Module is a module of WebAssembly whose exported function "run" never returns, unless its exported global
// "stop" is 1. It imports the function "f" of "e".
type Module struct {
	Name  string
	Bytes []byte
}

// statement is a piece of a function's body: it takes nothing from the stack and leaves nothing on it. Function
// 0 is the imported one, function 1 is "run", function 2 does nothing. There are 10 MB of memory, a table of 100
// 000 entries, an exception without values, and local variables of each type of number and of an array.
type statement struct {
	name string
	code []byte
}

// statements that end, with long ones among them that nothing interrupts.
var statements = []statement{
	{"nothing", []byte{0x01}},
	{"memory.fill of 5 MB", join(i32(0), i32(7), i32(5<<20), 0xfc, 0x0b, 0)},
	{"memory.copy of 5 MB", join(i32(0), i32(5<<20), i32(5<<20), 0xfc, 0x0a, 0, 0)},
	{"memory.copy of 9 MB that overlap", join(i32(0), i32(1<<20), i32(9<<20), 0xfc, 0x0a, 0, 0)},
	{"table.fill", join(i32(0), 0xd0, 0x70, i32(100_000), 0xfc, 0x11, 0)},
	{"table.copy", join(i32(0), i32(50_000), i32(50_000), 0xfc, 0x0e, 0, 0)},
	{"table.set", join(i32(5), 0xd0, 0x70, 0x26, 0)},
	{"table.grow by nothing", join(0xd0, 0x70, i32(0), 0xfc, 0x0f, 0, 0x1a)},
	{"memory.grow by nothing", join(i32(0), 0x40, 0, 0x1a)},
	{"memory.grow by too much", join(i32(60_000), 0x40, 0, 0x1a)},
	{"memory.size", []byte{0x3f, 0, 0x1a}},
	{"a call", []byte{0x10, 2}},
	{"a call of JavaScript", []byte{0x10, 0}},
	{"an indirect call", join(i32(2), 0x11, 0, 1)},
	{"a store", join(i32(64), 0x20, 0, 0x36, 2, 0)},
	{"a load", join(i32(64), 0x28, 2, 0, 0x21, 0)},
	{"an addition", join(0x20, 0, i32(3), 0x6a, 0x21, 0)},
	{"a division", join(0x20, 0, i32(3), 0x6d, 0x21, 0)},
	{"an addition of i64", []byte{0x20, 1, 0x42, 5, 0x7c, 0x21, 1}},
	{"an addition of f64", []byte{0x20, 2, 0x20, 2, 0xa0, 0x21, 2}},
	{"a vector", join(0x20, 0, 0xfd, 0x11, 0xfd, 0x1b, 0, 0x21, 0)},
	{"an exception that is caught", []byte{0x06, 0x40, 0x08, 0, 0x19, 0x0b}},
	{"a trap that is not reached", join(i32(0), 0x04, 0x40, 0x00, 0x0b)},
	{"an if with else", []byte{0x20, 0, 0x04, 0x40, 0x10, 2, 0x05, 0x01, 0x0b}},
	{"a block that is left", join(0x02, 0x40, i32(1), 0x0d, 0, 0x10, 2, 0x0b)},
	{"array.new", join(i32(7), i32(1000), 0xfb, 6, 1, 0x21, 5)},
	{"array.new_default", join(i32(100), 0xfb, 7, 1, 0x21, 5)},
	{"array.fill", join(i32(1000), 0xfb, 7, 1, 0x22, 5, i32(0), i32(9), i32(1000), 0xfb, 0x10, 1)},
	{"a loop of 64 rounds", join(i32(64), 0x21, 3, 0x03, 0x40, 0x20, 3, i32(1), 0x6b, 0x22, 3, 0x0d, 0, 0x0b)},
	{"a loop of 64 calls", join(i32(64), 0x21, 3, 0x03, 0x40, 0x10, 2, 0x20, 3, i32(1), 0x6b, 0x22, 3, 0x0d, 0, 0x0b)},
}

// moduleLoops repeat a statement for ever. $ is the statement.
var moduleLoops = []struct{ name, before, after string }{
	{"br", "\x03\x40", "\x0c\x00\x0b"},
	{"br_if", "\x03\x40", "\x41\x01\x0d\x00\x0b"},
	{"br_if of a variable", "\x41\x01\x21\x04\x03\x40", "\x20\x04\x0d\x00\x0b"},
	{"br_table", "\x03\x40", "\x20\x04\x0e\x02\x00\x00\x00\x0b"},
	{"br from a block", "\x03\x40\x02\x40", "\x0c\x01\x0b\x0b"},
	{"br from an if", "\x41\x01\x21\x04\x03\x40", "\x20\x04\x04\x40\x0c\x01\x0b\x0b"},
	{"loop in a loop", "\x03\x40\x03\x40", "\x0c\x01\x0b\x0b"},
	{"loop in a catch_all", "\x03\x40\x06\x40\x03\x40", "\x0c\x00\x0b\x19\x0b\x0c\x00\x0b"},
	{"catch_all in a loop", "\x03\x40\x06\x40", "\x08\x00\x19\x0b\x0c\x00\x0b"},
	{"loop in both arms of an if", "\x03\x40\x20\x04\x04\x40", "\x0c\x01\x05\x0c\x01\x0b\x0b"},
}

// Modules returns each statement in each loop, and then mixtures of several statements, n in all and in an order that
// the seed chooses.
func Modules(seed uint64, n int) []Module {
	random := rand.New(rand.NewPCG(seed, 2))
	var list []Module
	for _, s := range statements {
		for i := range moduleLoops {
			list = append(list, module(i, random.IntN(2) == 0, []statement{s}))
		}
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for len(list) < n {
		var some []statement
		for range 2 + random.IntN(4) {
			some = append(some, statements[random.IntN(len(statements))])
		}
		list = append(list, module(random.IntN(len(moduleLoops)), random.IntN(2) == 0, some))
	}
	return list[:n]
}

// StartModule is a module whose start function never ends.
func StartModule() []byte {
	return bytesOf([]byte{0x03, 0x40, 0x0c, 0x00, 0x0b}, section(8, uleb(1)))
}

// ModuleOf is a module whose "run" is that code.
func ModuleOf(code ...byte) []byte { return bytesOf(code, nil) }

// module is a module with that loop. inLoop says that it looks at "stop" in each round, not only before the first.
func module(i int, inLoop bool, some []statement) Module {
	l := moduleLoops[i]
	stop := []byte{0x23, 0, 0x04, 0x40, 0x0f, 0x0b} // if (stop) return
	code, name := append(append([]byte{}, stop...), l.before...), l.name
	if inLoop {
		code, name = append([]byte(l.before), stop...), l.name+", which looks at stop"
	}
	var names []string
	for _, s := range some {
		code = append(code, s.code...)
		names = append(names, s.name)
	}
	return Module{name + ": " + strings.Join(names, ", "), bytesOf(append(code, l.after...), nil)}
}

func bytesOf(code, start []byte) []byte {
	body := func(locals, code []byte) []byte {
		b := join(locals, code, 0x0b)
		return join(uleb(len(b)), b)
	}
	none := []byte{0}
	locals := []byte{5, 1, 0x7f, 1, 0x7e, 1, 0x7c, 2, 0x7f, 1, 0x63, 1}
	return join("\x00asm\x01\x00\x00\x00",
		section(1, join(uleb(2), 0x60, 0, 0, 0x5e, 0x7f, 1)), // a function, an array of i32
		section(2, join(uleb(1), 1, "e", 1, "f", 0, 0)),
		section(3, join(uleb(2), 0, 0)),
		section(4, join(uleb(2), 0x70, 0, uleb(100_000), 0x70, 0, 3)),
		section(5, join(uleb(1), 1, uleb(160), uleb(200))),
		section(13, join(uleb(1), 0, 0)),
		section(6, join(uleb(1), 0x7f, 1, 0x41, 0, 0x0b)),
		section(7, join(uleb(2), 3, "run", 0, 1, 4, "stop", 3, 0)), start,
		section(9, join(uleb(1), 2, 1, 0x41, 2, 0x0b, 0, 1, 2)),
		section(10, join(uleb(2), body(locals, code), body(none, nil))))
}

func section(id byte, contents []byte) []byte { return join(id, uleb(len(contents)), contents) }

func i32(n int) []byte {
	out := []byte{0x41}
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 && b&0x40 == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func uleb(n int) []byte {
	var out []byte
	for ; n > 0x7f; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

func join(parts ...any) (out []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			out = append(out, byte(p))
		case byte:
			out = append(out, p)
		case string:
			out = append(out, p...)
		case []byte:
			out = append(out, p...)
		}
	}
	return out
}
