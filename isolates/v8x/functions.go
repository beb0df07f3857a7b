package v8x

import "strings"

// MaxFunctions is how many functions V8's table has room for: the JSDispatchTable, 16 bytes an entry. It has an entry
// for each function in the code of a context, whether the function is called or not. All isolates of a process share
// it. V8 ends a thread that needs an entry when it is full: whichever makes the next context
// (docs/development/adr/0039). An isolate takes 4096 entries at a time.
const MaxFunctions = 256 << 20 / 16

// RuntimeFunctions is how many functions a context has without its module when all features of the runtime have run in
// it: 3050 in V8 13.6 when all were in the snapshot, and some more. Which features a module will use is not known when
// it is charged.
const RuntimeFunctions = 3500

// NodeFunctions is how many more functions a context has when all modules of Node have run in it. A module that has
// none of them does not name nodeRuntime.
const (
	NodeFunctions = 2400
	nodeRuntime   = "pinwheel:node"
)

// FunctionsIn returns an upper bound of the functions of a context with that module. A function has an arrow, or a
// body after its parameters. A class may have three of its own: a constructor, and one for its fields of each kind. Any
// control statement counts as a function too.
func FunctionsIn(code string) int64 {
	n := RuntimeFunctions + strings.Count(code, "=>") + 3*strings.Count(code, "class")
	if strings.Contains(code, nodeRuntime) {
		n += NodeFunctions
	}
	for rest := code; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return int64(n)
		}
		if mayBeginBody(rest[:i]) {
			n++
		}
		rest = rest[i+1:]
	}
}

// mayBeginBody reports whether a brace after that text may begin a function's body: after a parenthesis, with spaces,
// line ends or comments between.
func mayBeginBody(before string) bool {
	for i := len(before) - 1; i >= 0; i-- {
		switch c := before[i]; {
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
		case c == ')' || c == '/' || c == '\n' || c == '\r' || c >= 0x80:
			return true
		default:
			return false
		}
	}
	return false
}
