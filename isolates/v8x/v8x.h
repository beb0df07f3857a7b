// The C face of v8x.cc: what the Go half calls. See doc.go for who may call what from where.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct v8x_isolate v8x_isolate;
typedef struct v8x_context v8x_context;

// What happened in the isolate that no return value tells. Written by V8's callbacks on the
// owner thread, read by any thread: every field is atomic in v8x.cc.
enum {
  V8X_HEAP_LIMIT = 1,  // the heap limit was reached; execution was terminated
  V8X_CODE_LIMIT = 2,  // with V8X_HEAP_LIMIT: because of machine code
};

// Bytes of machine code that V8 has room for, of all isolates of a process (docs/development/adr/0040).
enum { V8X_MAX_CODE = 512 << 20 };

// What a call left behind. Valid until the next call on the same isolate.
typedef struct {
  const uint8_t* out;  // commands from JavaScript, in the encoding of codec.go
  size_t out_len;
  int32_t terminated;  // the call was cut short by TerminateExecution
  int32_t threw;       // the entry function threw: `error` says what
  const char* error;
  int32_t cache_rejected;  // of v8x_module: V8 did not take the cache
} v8x_result;

enum { V8X_EVALUATED = 0, V8X_PENDING = 1, V8X_COMPILE_ERROR = 2, V8X_REJECTED = 3, V8X_TERMINATED = 4 };

// Between v8x_starting(1) and v8x_starting(0) a fatal error of V8 ends the process instead.
void v8x_starting(int yes);

// How many threads V8 has lost to fatal errors, and the ids of the first `max` of them.
size_t v8x_parked(int32_t* tids, size_t max);

// What exists in the process now.
typedef struct {
  int64_t isolates, contexts, globals, budgets;
} v8x_live;
void v8x_count_live(v8x_live*);

// Gives memory that is free, or kept, back to the system.
void v8x_trim(void);
size_t v8x_allocated(void);

// How late the kernel may wake Go's sysmon thread, in ns; and its thread ID, 0 before it has run, with the slack that it has: sysmon.c.
enum { V8X_SYSMON_SLACK = 5000000 };
int v8x_sysmon(unsigned long* slack);

// What the WebAssembly of the process is charged: wasm.cc.
size_t v8x_wasm_bytes(void);

enum { V8X_MOST_KEPT = 24 << 20 };
// The memory of closed isolates that is kept for the next ones, V8X_MOST_KEPT bytes at most: blocks.cc.
typedef struct {
  size_t kept;    // bytes
  size_t reused;  // how often V8 got such a block
} v8x_blocks;
void v8x_count_blocks(v8x_blocks*);

enum { V8X_THROTTLE_MS = 190 };
// Makes a thread of this process sleep for V8X_THROTTLE_MS. v8x_throttle_init once before.
void v8x_throttle_init(void);
void v8x_throttle(int32_t tid);
// Has all isolates forget the calling thread.
void v8x_forget_thread(void);

const char* v8x_version(void);
// Installs the process-wide parts. Once, after v8go has started V8.
void v8x_init(void);

typedef struct {
  const char* name;
  size_t name_len;
  const char* text;
  size_t text_len;
  const char* feature;  // it runs when host.run gets this name; "" = in every context, when it is made
  size_t feature_len;
  const uint8_t* cache;  // null, or what v8x_file_cache made of it
  size_t cache_len;
} v8x_file;

// Makes the snapshot from which every later isolate and context comes: of a context in which these files of the runtime
// have run, each the body of function(host, internal, primordials). Once. Returns what is wrong, or null.
const char* v8x_snapshot(const v8x_file* files, size_t n);

v8x_isolate* v8x_attach(void* isolate, size_t heap_slack, size_t buffer_limit);
// Changes the limits of an isolate that has run nothing yet.
void v8x_set_limits(v8x_isolate*, size_t heap, size_t buffer_limit);
// From now on V8 optimizes no code of the isolate, which has run nothing yet: compilers.cc.
void v8x_baseline(v8x_isolate*);
// Says how much of the heap, and of the ArrayBuffers, does not belong to the worker that runs next: both limits are so much higher. What V8 has
// raised its limit to it keeps. Between calls only.
void v8x_set_others(v8x_isolate*, size_t bytes);
// Before V8 disposes of the isolate, and after: while it does, a last garbage collection may still reach the heap limit.
void v8x_detach(v8x_isolate*);
void v8x_isolate_free(v8x_isolate*);
// Gives back what the commands of the last call took, if that was much. They are not valid any more.
void v8x_forget(v8x_isolate*);

uint32_t v8x_flags(v8x_isolate*);
size_t v8x_buffer_bytes(v8x_isolate*);
uint32_t v8x_collections(v8x_isolate*);
size_t v8x_code_bytes(v8x_isolate*);
void v8x_low_memory(v8x_isolate*);
void v8x_collect(v8x_isolate*);

v8x_context* v8x_context_new(v8x_isolate*, uintptr_t handle);
// Whether isolates that this thread makes from now on come from V8's own snapshot, as the creator of ours does: V8 takes
// code from one to the other only then.
void v8x_plain(int yes);
// A context in which the files have run now, in place of one from the snapshot. Null when that failed.
v8x_context* v8x_context_of(v8x_isolate*, uintptr_t handle, const v8x_file*, size_t n);
// Keeps the functions of the files that will run in the context.
void v8x_keep_files(v8x_context*);
// Makes a code cache of file i of a context that keeps them, with the functions that have been compiled by now. A file that
// did not run is compiled, as it would be to run. Returns null, or what v8x_code_cache_free takes.
void* v8x_file_cache(v8x_context*, size_t i, const uint8_t** data, size_t* len);
// Makes data the code cache of file i of the latest snapshot, for contexts that run it later.
void v8x_use_file_cache(size_t i, const uint8_t* data, size_t len);
void v8x_context_free(v8x_context*);

// Compiles and evaluates the worker's module and, once evaluated, passes its namespace to the
// entry function as (op_module, namespace). cache is null or what v8x_code_cache made of the same text in this
// process: V8 believes it. Returns V8X_*.
int v8x_module(v8x_context*, const char* name, size_t name_len, size_t prefix_len, const char* text, size_t text_len,
               const uint8_t* cache, size_t cache_len, v8x_result*);
// Asks again after V8X_PENDING.
int v8x_module_poll(v8x_context*, v8x_result*);
// Makes a code cache of the module: its code, with the functions that have been compiled by now. Leaves the results of
// the last call as they are. Returns null, or what v8x_code_cache_free takes once data has been copied.
void* v8x_code_cache(v8x_context*, const uint8_t** data, size_t* len);
void v8x_code_cache_free(void*);
// Calls the entry function with the encoded arguments; body stands for the argument `tag_body`.
void v8x_call(v8x_context*, const uint8_t* in, size_t in_len, const uint8_t* body, size_t body_len, v8x_result*);

// From inside v8xAsk only: the answer to host.ask, encoded, or an error message.
void v8x_answer(v8x_context*, const uint8_t* bytes, size_t len, int is_error);

#ifdef __cplusplus
}
#endif
