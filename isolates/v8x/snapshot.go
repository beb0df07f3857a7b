package v8x

// #include <stdlib.h>
// #include "v8x.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// File is one file of the runtime: the body of function(host, internal, primordials). A file with a Feature runs when
// host.run gets that name, the others when a context is made.
type File struct{ Name, Text, Feature string }

// startLimits are the limits of isolates that Snapshot makes for itself.
var startLimits = Limits{Heap: 64 << 20, Buffers: 1 << 20}

// Snapshot makes the snapshot of a context in which the files have run, in order. One of the files has called
// host.entry. Every isolate and context is made from the snapshot, and so has the runtime from the start. Call it once
// per process, after Start. It takes some 20 ms, and 40 more with warmUp. The files must make no ArrayBuffer, no
// typed array of over 64 bytes and no regular expression (snapshot.cc says why). Snapshot makes a context from it
// before it returns. If V8 cannot do that, it ends the process here, not a thread later.
//
// warmUp, unless nil, uses a context of the same files as a first event would. The context is discarded afterwards.
// The functions of the runtime that V8 compiles for it are part of the snapshot as bytecode. The others are compiled in
// each context when they first run. warmUp must not keep the context.
func Snapshot(files []File, warmUp func(*Context)) error {
	C.v8x_starting(1)
	defer C.v8x_starting(0)
	var caches [][]byte
	if warmUp != nil {
		caches = warmedUp(files, warmUp)
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	list := cfiles(files, caches, &pins)
	if wrong := C.v8x_snapshot(unsafe.SliceData(list), C.size_t(len(list))); wrong != nil {
		return fmt.Errorf("v8x: snapshot: %s", C.GoString(wrong))
	}
	return finish(files, warmUp)
}

// finish makes a context from the snapshot and, with warmUp, the code caches for the files of features: V8 accepts them
// only from an isolate of the same snapshot.
func finish(files []File, warmUp func(*Context)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	iso := NewIsolate(startLimits)
	defer iso.Close()
	c, err := iso.NewContext(nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if warmUp == nil {
		return nil
	}
	c.host = notNow
	C.v8x_keep_files(c.ptr)
	warmUp(c)
	for i, f := range files {
		if f.Feature == "" {
			continue
		}
		c.fileCache(i, func(data []byte) { C.v8x_use_file_cache(C.size_t(i), cbytes(data), C.size_t(len(data))) })
	}
	return nil
}

// notNow answers what files ask while nothing runs yet.
func notNow([]byte) ([]byte, error) { return nil, errors.New("not during the warm-up") }

// fileCache passes the code cache of file i, which is only valid during the call, to use.
func (c *Context) fileCache(i int, use func([]byte)) {
	var data *C.uint8_t
	var n C.size_t
	if made := C.v8x_file_cache(c.ptr, C.size_t(i), &data, &n); made != nil {
		use(unsafe.Slice((*byte)(data), n))
		C.v8x_code_cache_free(made)
	}
}

// cfiles converts files for C, each with its code cache if there are any. pins pins Go's memory.
func cfiles(files []File, caches [][]byte, pins *runtime.Pinner) []C.v8x_file {
	list := make([]C.v8x_file, len(files))
	for i, f := range files {
		name, text, feature := cstr(f.Name), cstr(f.Text), cstr(f.Feature)
		pins.Pin(name)
		pins.Pin(text)
		pins.Pin(feature)
		list[i] = C.v8x_file{
			name: name, name_len: C.size_t(len(f.Name)), text: text, text_len: C.size_t(len(f.Text)),
			feature: feature, feature_len: C.size_t(len(f.Feature)),
		}
		if i < len(caches) && len(caches[i]) > 0 {
			pins.Pin(&caches[i][0])
			list[i].cache, list[i].cache_len = cbytes(caches[i]), C.size_t(len(caches[i]))
		}
	}
	return list
}

// warmedUp runs warmUp and returns the code caches of the files. It returns none if the files do not run.
func warmedUp(files []File, warmUp func(*Context)) [][]byte {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.v8x_plain(1)
	iso := NewIsolate(startLimits)
	C.v8x_plain(0)
	defer iso.Close()
	var pins runtime.Pinner
	defer pins.Unpin()
	list := cfiles(files, nil, &pins)
	c := &Context{host: notNow}
	c.handle = cgo.NewHandle(c)
	c.ptr = C.v8x_context_of(iso.ptr, C.uintptr_t(c.handle), unsafe.SliceData(list), C.size_t(len(list)))
	if c.ptr == nil {
		c.handle.Delete()
		return nil
	}
	c.result = (*C.v8x_result)(C.calloc(1, C.sizeof_v8x_result))
	defer c.Close()
	warmUp(c)
	caches := make([][]byte, len(files))
	for i, f := range files {
		if f.Feature == "" {
			c.fileCache(i, func(data []byte) { caches[i] = bytes.Clone(data) })
		}
	}
	return caches
}
