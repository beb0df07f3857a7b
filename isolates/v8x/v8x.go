package v8x

// #cgo CXXFLAGS: -std=c++20 -fno-rtti -fno-exceptions -O2 -Wall -Wextra
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v87Isolate3NewERKNS0_12CreateParamsE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v87Context3NewEPNS_7IsolateEPNS_22ExtensionConfigurationENS_10MaybeLocalINS_14ObjectTemplateEEENS5_INS_5ValueEEENS_33DeserializeInternalFieldsCallbackEPNS_14MicrotaskQueueENS_30DeserializeContextDataCallbackENS_29DeserializeAPIWrapperCallbackE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v88internal12IsolateGroup28GetBackingStorePageAllocatorEv
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v88internal8PagePool17ReleaseOnTearDownEPNS0_7IsolateE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v87Isolate7DisposeEv
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS14SetPermissionsEPvmNS1_16MemoryPermissionE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS13DecommitPagesEPvm
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS4FreeEPvm
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS7ReleaseEPvm
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS29CreateAddressSpaceReservationEPvmmNS1_16MemoryPermissionE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base2OS27FreeAddressSpaceReservationENS0_23AddressSpaceReservationE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base23AddressSpaceReservation14SetPermissionsEPvmNS0_2OS16MemoryPermissionE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base23AddressSpaceReservation13DecommitPagesEPvm
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base23AddressSpaceReservation8AllocateEPvmNS0_2OS16MemoryPermissionE
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v84base23AddressSpaceReservation4FreeEPvm
// #cgo LDFLAGS: -Wl,--wrap=_ZN2v88internal7Isolate13use_optimizerEv
// #cgo LDFLAGS: -Wl,--wrap=_cgo_try_pthread_create
// #include <stdlib.h>
// #include "v8x.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"unsafe"

	v8 "rogchap.com/v8go"
)

// Flags report events in an isolate that no result reports.
type Flags uint32

// The flags.
const (
	HeapLimit Flags = C.V8X_HEAP_LIMIT // the heap limit was reached and execution terminated
	CodeLimit Flags = C.V8X_CODE_LIMIT // with HeapLimit: there was no more room for machine code, of which it had much
)

// Parked returns the ids of the threads that V8 has lost to fatal errors. They never come back. Any goroutine may call
// it. It costs almost nothing while there is no such thread.
func Parked() []int {
	n := C.v8x_parked(nil, 0)
	if n == 0 {
		return nil
	}
	tids := make([]C.int32_t, n)
	C.v8x_parked(&tids[0], n)
	list := make([]int, n)
	for i, tid := range tids {
		list[i] = int(tid)
	}
	return list
}

// Limits of an isolate, in bytes.
type Limits struct {
	Heap    uint64 // JavaScript heap
	Buffers uint64 // ArrayBuffers
}

// heapSlack is how much V8 may use beyond the limit until termination takes effect. A single string or array is at most
// 512 MB. With less slack than that, one allocation aborts the process.
const heapSlack = 512 << 20

// Isolate is one V8 heap.
type Isolate struct {
	v8    *v8.Isolate
	ptr   *C.v8x_isolate
	ready *Context // made by Prepare for the next NewContext; nil = none
}

// NewIsolate makes an isolate. It takes a millisecond. It may be called on another thread than the one that will use
// the isolate.
func NewIsolate(l Limits) *Isolate {
	iso := v8.NewIsolate(v8.WithResourceConstraints(min(1<<20, l.Heap), l.Heap))
	raw := *(*unsafe.Pointer)(unsafe.Pointer(iso))
	return &Isolate{v8: iso, ptr: C.v8x_attach(raw, heapSlack, C.size_t(l.Buffers))}
}

// SetLimits changes the limits of an isolate that has run nothing yet. The isolate is then like one that was made with
// these limits. l.Heap is at least 8 MB.
func (i *Isolate) SetLimits(l Limits) { C.v8x_set_limits(i.ptr, C.size_t(l.Heap), C.size_t(l.Buffers)) }

// Baseline has V8 optimize no code of the isolate, for good: neither Maglev nor TurboFan gets any, Sparkplug does. The
// isolate has run nothing yet, so it has no optimized code. Owner thread only, between calls.
func (i *Isolate) Baseline() { C.v8x_baseline(i.ptr) }

// Prepare makes the context that the next NewContext will return.
func (i *Isolate) Prepare() error {
	if i.ready != nil {
		return nil
	}
	c, err := i.NewContext(nil)
	i.ready = c
	return err
}

// Terminate ends the JavaScript that runs in the isolate now, uncatchably. It does nothing when none runs. Any
// goroutine may call it.
func (i *Isolate) Terminate() { i.v8.TerminateExecution() }

// Flags returns the flags of the isolate. Any goroutine may call it.
func (i *Isolate) Flags() Flags { return Flags(C.v8x_flags(i.ptr)) }

// HeapBytes returns the memory that the heap and its ArrayBuffers take.
func (i *Isolate) HeapBytes() uint64 {
	return i.v8.GetHeapStatistics().TotalHeapSize + uint64(C.v8x_buffer_bytes(i.ptr))
}

// Collections returns how many times V8 has collected all garbage of the isolate. Owner thread only.
func (i *Isolate) Collections() uint32 { return uint32(C.v8x_collections(i.ptr)) }

// CodeBytes returns what the machine code of the isolate takes of MaxCode. Most of it is in HeapBytes too. Owner thread
// only.
func (i *Isolate) CodeBytes() uint64 { return uint64(C.v8x_code_bytes(i.ptr)) }

// MaxCode bounds CodeBytes of all isolates of a process together. V8 ends a thread that needs more
// (docs/development/adr/0040).
const MaxCode = C.V8X_MAX_CODE

// SetOthers sets how many bytes in the isolate belong to other contexts than the one that is called next. The heap and
// the ArrayBuffers may exceed their limits by that much. Owner thread only, between calls.
func (i *Isolate) SetOthers(bytes uint64) { C.v8x_set_others(i.ptr, C.size_t(bytes)) }

// Collect frees most garbage. It takes about a millisecond per MB of live data. Owner thread only, between calls.
func (i *Isolate) Collect() { C.v8x_collect(i.ptr) }

// CollectGarbage frees all garbage. It takes several times as long as Collect.
func (i *Isolate) CollectGarbage() { C.v8x_low_memory(i.ptr) }

// Close frees the isolate. Its contexts must be closed first.
func (i *Isolate) Close() {
	if i.ready != nil {
		i.ready.Close()
	}
	C.v8x_detach(i.ptr)
	i.v8.Dispose()
	C.v8x_isolate_free(i.ptr)
}

// HostFunc answers host.ask: in holds the encoded command, and the answer is one encoded value. It runs in the middle
// of JavaScript, so it must be quick and must not touch V8. An error becomes a TypeError.
type HostFunc func(in []byte) (out []byte, err error)

// Context is a set of globals in an isolate.
type Context struct {
	ptr    *C.v8x_context
	host   HostFunc
	handle cgo.Handle
	result *C.v8x_result // in C memory, so that passing it costs no allocation
}

// NewContext makes a context from the Snapshot, with the runtime in it.
func (i *Isolate) NewContext(host HostFunc) (*Context, error) {
	if c := i.ready; c != nil {
		i.ready, c.host = nil, host
		return c, nil
	}
	c := &Context{host: host}
	c.handle = cgo.NewHandle(c)
	c.ptr = C.v8x_context_new(i.ptr, C.uintptr_t(c.handle))
	if c.ptr == nil {
		c.handle.Delete()
		return nil, errors.New("v8x: no memory for a context")
	}
	c.result = (*C.v8x_result)(C.calloc(1, C.sizeof_v8x_result))
	return c, nil
}

// Close frees the context.
func (c *Context) Close() {
	C.v8x_context_free(c.ptr)
	C.free(unsafe.Pointer(c.result))
	c.handle.Delete()
}

// keptOut is how many bytes of commands may stay in an isolate's memory until its next call.
const keptOut = 256 << 10

// Forget frees the memory of r.Out if it is large. r.Out is not valid afterwards. r is the result of the last call in
// the isolate.
func (i *Isolate) Forget(r Result) {
	if len(r.Out) > keptOut {
		C.v8x_forget(i.ptr)
	}
}

// Result is the result of a call. Out is C++ memory: it is valid until the next call in the same isolate.
type Result struct {
	Out        []byte // encoded commands
	Terminated bool   // cut short by Terminate, or by the heap limit
	Err        error  // the runtime itself failed
}

func (c *Context) take() Result {
	r := Result{Terminated: c.result.terminated != 0}
	if c.result.out_len > 0 {
		r.Out = unsafe.Slice((*byte)(unsafe.Pointer(c.result.out)), int(c.result.out_len))
	}
	if c.result.threw != 0 {
		r.Err = errors.New(C.GoString(c.result.error))
	}
	return r
}

// Call calls the entry function. in is an encoded call; body stands for its Body argument.
func (c *Context) Call(in, body []byte) Result {
	C.v8x_call(c.ptr, cbytes(in), C.size_t(len(in)), cbytes(body), C.size_t(len(body)), c.result)
	return c.take()
}

// v8xAsk is called by C++ for host.ask.
//
//export v8xAsk
func v8xAsk(handle C.uintptr_t, ctx *C.v8x_context, in *C.uint8_t, n C.size_t) {
	c := cgo.Handle(handle).Value().(*Context)
	answer, err := ask(c.host, unsafe.Slice((*byte)(unsafe.Pointer(in)), int(n)))
	if err != nil {
		text := []byte(err.Error())
		C.v8x_answer(ctx, cbytes(text), C.size_t(len(text)), 1)
		return
	}
	C.v8x_answer(ctx, cbytes(answer), C.size_t(len(answer)), 0)
}

// ask never panics: a panic must not cross V8's frames, which would leave its lock held.
func ask(a HostFunc, in []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("host: %v", p)
		}
	}()
	return a(in)
}

func cstr(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

func cbytes(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }
