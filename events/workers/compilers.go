package workers

import (
	"fmt"
	"slices"
)

// Compilers says which compilers of V8 may have the code of workers. The compiler of regular expressions is not among
// them: it is always there. "" is CompilersFull.
type Compilers string

// The values of Compilers, in the order of what they allow.
const (
	CompilersFull     Compilers = "full"     // all: Sparkplug, Maglev, TurboFan
	CompilersBaseline Compilers = "baseline" // Sparkplug, which does not optimize
	CompilersNone     Compilers = "none"     // none: code is interpreted. For a process, not for an owner
)

var compilers = []Compilers{CompilersFull, CompilersBaseline, CompilersNone}

// OrDefault is c, or CompilersFull.
func (c Compilers) OrDefault() Compilers {
	if c == "" {
		return CompilersFull
	}
	return c
}

// Valid reports whether c is one of the values, or "".
func (c Compilers) Valid() bool { return slices.Contains(compilers, c.OrDefault()) }

// Within is c, lowered to what most allows. Both are valid.
func (c Compilers) Within(most Compilers) Compilers {
	c, most = c.OrDefault(), most.OrDefault()
	return compilers[max(slices.Index(compilers, c), slices.Index(compilers, most))]
}

// checkOfOwner returns an error that says what a policy may have.
func (c Compilers) checkOfOwner() error {
	if c.Valid() && c != CompilersNone {
		return nil
	}
	return fmt.Errorf(`compilers is %q: it is %s or %s, or "" for what the fleet has`, string(c), CompilersFull,
		CompilersBaseline)
}
