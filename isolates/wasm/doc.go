// Package wasm reads a WebAssembly module once, before V8 sees it, and says what V8 would have to do for it: how
// much code it compiles, what that compilation costs at most, which memory, tables and globals an instance has.
// Modules beyond the bounds of this package are refused, as are features whose loops V8 cannot end (tail calls), and
// memory that no limit covers (shared, 64-bit, or more than one).
//
// Types of operands are V8's business. This package checks what keeps its own walk on the path of V8's: each length,
// each number, the order of sections, the immediates of each instruction, the nesting of blocks. A module that V8
// accepts has been read here as V8 reads it. The walk costs time linear in the module, and memory linear in its
// types and functions.
package wasm
