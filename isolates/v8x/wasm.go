package v8x

// #include "v8x.h"
import "C"

import "encoding/binary"

// AskWasm is the question that a context asks its HostFunc before V8 compiles a module of WebAssembly: its bytes, the
// only argument. V8 compiles exactly these bytes, unless the HostFunc returns an error, whose text the guest gets.
const AskWasm = 6

// AskWasmDecode is the question before V8 decodes a module that the HostFunc has admitted: its hash. V8 keeps
// memory for the types of each module that it decodes, until the process ends. The guest gets the text of an
// error.
const AskWasmDecode = 9

// AnswerWasm is the answer that V8 may compile the module: the hash of its bytes, by which isolates share its code;
// what one isolate with it is charged, in bytes of its Buffers, until it is closed; what its code takes at most, in
// bytes, of what all modules of the process may; and how many functions the module has.
func AnswerWasm(hash [32]byte, charge, most, functions uint64) []byte {
	answer := append([]byte{1}, hash[:]...)
	for _, n := range [...]uint64{charge, most, functions} {
		answer = binary.LittleEndian.AppendUint64(answer, n)
	}
	return answer
}

// AnswerNoWasm is the answer that the context has no modules at all, and why. Also WebAssembly.validate throws then.
func AnswerNoWasm(why string) []byte { return append([]byte{0}, why...) }

// WasmBytes returns what the modules that isolates of this process have are charged, each counted once. Any goroutine
// may call it.
func WasmBytes() uint64 { return uint64(C.v8x_wasm_bytes()) }
