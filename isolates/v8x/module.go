package v8x

// #include "v8x.h"
import "C"

import "unsafe"

// ModuleState is the progress of a module.
type ModuleState int

// The states of a module.
const (
	Evaluated    ModuleState = C.V8X_EVALUATED     // the entry function has received its namespace
	Pending      ModuleState = C.V8X_PENDING       // a top-level await is pending: call PollModule after each call
	CompileError ModuleState = C.V8X_COMPILE_ERROR // Result.Err is "file:line:column: message"
	Rejected     ModuleState = C.V8X_REJECTED      // it threw: Result.Out has the runtime's description of the error
	Terminated   ModuleState = C.V8X_TERMINATED
)

// Source is the text of a module.
type Source struct {
	Prefix, Name string // the name in stacks is both; Name alone is that of the file in import.meta.url
	Text         string
	Cache        []byte // nil, or what CodeCache returned for a module of exactly this text in this process
}

// Module compiles and evaluates the worker's module, once in a context.
func (c *Context) Module(s Source) (ModuleState, Result) {
	name := s.Prefix + s.Name
	state := C.v8x_module(c.ptr, cstr(name), C.size_t(len(name)), C.size_t(len(s.Prefix)),
		cstr(s.Text), C.size_t(len(s.Text)), cbytes(s.Cache), C.size_t(len(s.Cache)), c.result)
	return ModuleState(state), c.take()
}

// CacheRejected reports whether V8 did not accept the Cache of the Source in the last call of Module. The module was
// then compiled from its text.
func (c *Context) CacheRejected() bool { return c.result.cache_rejected != 0 }

// CodeCache returns V8's code cache of the context's module: the bytecode of the module and of those of its functions
// that have run. It is valid only for the same text in any isolate of this process: V8 does not check its content
// (docs/development/adr/0007). It takes about 10 ms for 1 MB, and does not change the Result of the last call. It
// returns nil if there is no module or V8 made no cache.
func (c *Context) CodeCache() []byte {
	var data *C.uint8_t
	var n C.size_t
	made := C.v8x_code_cache(c.ptr, &data, &n)
	if made == nil {
		return nil
	}
	defer C.v8x_code_cache_free(made)
	return C.GoBytes(unsafe.Pointer(data), C.int(n))
}

// PollModule continues a module that was Pending.
func (c *Context) PollModule() (ModuleState, Result) {
	state := C.v8x_module_poll(c.ptr, c.result)
	return ModuleState(state), c.take()
}
