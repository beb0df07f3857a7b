package bundle

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

// esbuild gives a class another name where another one is in the way, or where the class speaks of itself: class
// PaymentError becomes var PaymentError = class _PaymentError. Code reads these names: err.constructor.name. The option
// KeepNames of esbuild would keep them, at the price of a call for each function that is made. Here a class whose name
// has changed gets a static block that gives it back, behind the brace that opens its body: no line and no column of
// another token moves, so the source map holds.

// renamedClass finds the beginning of classes. The variable counts where the class has no name of its own.
var renamedClass = regexp.MustCompile(`(?:([\w$]+) = |[^\w$.])(class(?: ([\w$]+))?)(?: extends | \{\n)`)

// keepClassNames returns the code with the names that classes have in the sources.
func keepClassNames(code string, sourceMap []byte) string {
	classes := renamedClass.FindAllStringSubmatchIndex(code, -1)
	var m *sourcemap.Map
	var b strings.Builder
	helper := "__className"
	for strings.Contains(code, helper) {
		helper += "_"
	}
	done, line, counted := 0, 1, 0
	for _, c := range classes {
		from, to := c[6], c[7]
		if from < 0 {
			from, to = c[2], c[3]
		}
		if from < 0 || !mayBeRenamed(code[from:to]) {
			continue
		}
		if m == nil {
			var err error
			if m, err = sourcemap.Parse(sourceMap); err != nil {
				return code
			}
		}
		line, counted = line+strings.Count(code[counted:from], "\n"), from
		name := classNameAt(m, line, 1+from-(1+strings.LastIndexByte(code[:from], '\n')))
		body := bodyOf(code, c[5])
		if name == "" || name == code[from:to] || body < 0 {
			continue
		}
		b.WriteString(code[done:body])
		fmt.Fprintf(&b, " static { %s(this, %q); }", helper, name)
		done = body
	}
	if done == 0 {
		return code
	}
	b.WriteString(code[done:])
	fmt.Fprintf(&b, giveName, helper)
	return b.String()
}

// giveName is hoisted: classes are made before it stands. The module may have an Object of its own. A static method or
// accessor that is called name stays.
const giveName = `function %s(target, value) {
  const object = ({}).constructor;
  if (typeof object.getOwnPropertyDescriptor(target, "name")?.value === "string")
    object.defineProperty(target, "name", { value, configurable: true });
}
`

// mayBeRenamed reports whether a name is one that esbuild may have made of another: with _ before it or a number behind
// it.
func mayBeRenamed(name string) bool {
	last := name[len(name)-1]
	return name[0] == '_' || last >= '0' && last <= '9'
}

var (
	classHead  = regexp.MustCompile(`^(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+([\w$]+)`)
	afterClass = regexp.MustCompile(`\bclass\s+$`)
	identifier = regexp.MustCompile(`^[\w$]+`)
)

// classNameAt is the name of the class in the source that a place of the code leads to; "" = it leads to no class.
func classNameAt(m *sourcemap.Map, line, column int) string {
	p, ok := m.Position(line, column)
	if !ok {
		return ""
	}
	before, text := split(m.Text(p.File), p.Line, p.Column)
	if match := classHead.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	if afterClass.MatchString(before) {
		return identifier.FindString(text)
	}
	return ""
}

// split cuts the line of a text at a column, which counts UTF-16 as source maps do. Both begin with 1.
func split(text string, line, column int) (before, after string) {
	for range line - 1 {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return "", ""
		}
		text = rest
	}
	text, _, _ = strings.Cut(text, "\n")
	i := 0
	for n := 1; n < column && i < len(text); n++ {
		r, size := utf8.DecodeRuneInString(text[i:])
		if i += size; r > 0xffff {
			n++
		}
	}
	return text[:i], text[i:]
}

var nested = regexp.MustCompile(`\b(?:class|function)\b|=>`)

// bodyOf is the offset behind the brace that opens the body of a class, whose head goes on at from; -1 = the head is
// not one that this understands. esbuild breaks the line there.
func bodyOf(code string, from int) int {
	depth := 0
	for i := from; i < len(code); i++ {
		switch c := code[i]; c {
		case '"', '\'':
			for i++; i < len(code) && code[i] != c; i++ {
				if code[i] == '\\' {
					i++
				}
			}
		case '`', '/', ';':
			return -1
		case '(', '[':
			depth++
		case ')', ']', '}':
			depth--
		case '{':
			if depth > 0 {
				depth++
				continue
			}
			if nested.MatchString(code[from:i]) || !strings.HasPrefix(code[i:], "{\n") {
				return -1
			}
			return i + 1
		}
	}
	return -1
}
