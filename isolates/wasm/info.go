package wasm

import "fmt"

// Info is what a module needs and what it costs. Sizes are bytes unless they say otherwise. Numbers of
// functions, tables, globals and tags include imported ones, as their indices do.
type Info struct {
	Code         int     // of the code section with its header, 0 if there is none; V8's machine code is a multiple of it
	Data         int     // in data segments, which each instance copies
	Types        int     // V8 keeps the types of all modules until the process ends, and ends it at 1,000,000
	TypeBytes    int     // of the section with the types
	Functions    int     // also imported ones
	Work         int64   // the sum of its functions, see MaxWorkFunction
	Compiled     int64   // the part of Work that compiling costs
	WorkFunction int64   // of the function that costs most
	Memory       *Memory // nil if there is none
	Tables       int
	TableEntries int64 // which the tables have at first, together; imported tables have their own
	TableMax     int64 // which they may grow to, together
	Globals      int
	Tags         int
	Imports      int
	Exports      int
	Elements     int  // entries of element segments
	Start        bool // creating an instance runs code of the module
}

// Memory is the memory of a module, declared or imported. A page has 65536 bytes.
type Memory struct {
	Pages    int64 // initial
	Max      int64 // -1 = none
	Imported bool
}

// Error says why a module is refused.
type Error struct {
	Offset int    // of the first byte that is wrong, from the start of the module
	Reason string // with the number and what is allowed
	Bound  bool   // the module may be valid, but is beyond one of our bounds or uses a feature that is not supported
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Reason) }
