// Package endless writes JavaScript that never ends, in many shapes. A compiler may remove the check for termination
// from a loop that it takes for a short one, and that follows from the shape. So the shapes have what compilers look
// at: calls that become loops of machine code, loops of a known length, and loops in loops. Their bodies keep nothing,
// so no limit of memory ends them first.
package endless

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Shape is one endless loop.
type Shape struct {
	Body string // one statement
	Loop string // the name of the loop around it
	Code string // of a function's body: it never returns
}

// Pick chooses one of n things: it returns 0 to n-1.
type Pick func(n int) int

// Bytes picks by the bytes of a text, and the first thing when they are used up.
func Bytes(text []byte) Pick {
	return func(n int) int {
		if len(text) == 0 {
			return 0
		}
		b := int(text[0])
		text = text[1:]
		if n > 256 && len(text) > 0 {
			b, text = b<<8|int(text[0]), text[1:]
		}
		return b % n
	}
}

// All returns every body in some kinds of loop, which the seed chooses.
func All(seed uint64, loopsOfEach int) []Shape {
	random := rand.New(rand.NewPCG(seed, 0))
	var list []Shape
	for _, body := range bodies {
		for _, l := range random.Perm(len(loops))[:loopsOfEach] {
			list = append(list, shape(loops[l], body))
		}
	}
	return list
}

// Mixed returns a loop of one to four of the bodies, with loops of a known length around some of them.
func Mixed(pick Pick) Shape {
	l := loops[pick(len(loops))]
	var list []string
	for range 1 + pick(4) {
		body := bodies[pick(len(bodies))]
		if w := pick(2 * len(wrappers)); w < len(wrappers) {
			body = strings.ReplaceAll(wrappers[w], "$", body)
		}
		list = append(list, "{ "+body+" }")
	}
	return shape(l, strings.Join(list, " "))
}

func shape(l loop, body string) Shape {
	return Shape{Body: body, Loop: l.name, Code: before + fmt.Sprintf(l.text, body)}
}

// loop has a place for a body. It ends only if the body throws.
type loop struct{ name, text string }

var loops = []loop{
	{"for", `for (;;) { %s }`},
	{"while", `while (true) { %s }`},
	{"do", `do { %s } while (n !== "")`},
	{"counter that starts again", `for (let i = 0; i < 1000; i = (i + 1) %% 1000) { %s }`},
	{"counter", `for (let i = 0; i >= 0; i++) { %s; if (i > 1e6) i = 0 }`},
	{"loop of known length in a loop", `for (;;) for (let i = 0; i < 100; i++) { %s }`},
	{"loop of unknown length in a loop", `let k = 1; for (;;) { k = k %% 50 + 1; for (let i = 0; i < k; i++) { %s } }`},
	{"label", `again: for (;;) { for (let i = 0; i < 8; i++) { %s; if (i === 5) continue again } }`},
	{"called function", `const once = () => { %s }; for (;;) once()`},
	{"finally", `for (;;) { try { %s } finally { n = 7 } }`},
}

// wrappers are loops that end, around a body.
var wrappers = []string{
	`for (let j = 0; j < 3; j++) { $ }`,
	`for (let j = 0; j < 30; j++) { $ }`,
	`for (let j = 400; j > 0; j -= 10) { $ }`,
	`for (let j = 1; j < 4096; j <<= 1) { $ }`,
	`if (n > 3) { $ }`,
	`try { $ } catch { n = 7 }`,
	`switch (n & 1) { case 1: $; break; default: n = 7 }`,
	`(() => { $ })()`,
}
