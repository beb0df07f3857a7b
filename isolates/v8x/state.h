// The state behind v8x_isolate and v8x_context.
#pragma once
#include "codec.h"
#include "sources.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace v8x {
constexpr size_t kConstantCount = 3;
class WasmCode;  // wasm.cc
}

struct v8x_isolate {
  v8::Isolate* isolate = nullptr;
  std::atomic<uint32_t> flags{0};
  size_t heap_slack = 0;
  size_t old_limit = 0;  // of the old generation: what v8x_set_limits asked for, else what V8 says at its first call
  size_t buffer_limit = 0;
  size_t others = 0;  // bytes by which both limits may be passed: v8x_set_others
  Budget* buffers = nullptr;
  size_t scratch = 0;  // bytes that clones under way have serialised: clone.cc
  bool baseline = false;     // V8 does not optimize what runs in it
  uint32_t collections = 0;  // of all garbage
  size_t code = 0;           // bytes of machine code when last measured
  v8x::Outbox out;
  std::string error;
  std::map<std::string, std::shared_ptr<v8x::WasmCode>> wasm;  // modules that it has had, by their hashes
  v8::Address* constants[v8x::kConstantCount] = {};  // globals: null, true, false
  v8x::Sources* sources = nullptr;            // the runtime's files
  std::unique_ptr<v8x::Sources> own_sources;  // of v8x_context_of; null: they are the latest snapshot's
};

struct v8x_context {
  v8x_isolate* owner = nullptr;
  uintptr_t handle = 0;             // of the Go half, for v8xAsk
  v8::Address* context = nullptr;   // globals, released in v8x_context_free
  v8::Address* entry = nullptr;
  v8::Address* lazy = nullptr;      // host.lazyValues
  v8::Address* module = nullptr;    // and its evaluation promise, while pending
  v8::Address* evaluation = nullptr;
  std::vector<v8::Address*> files;  // v8x_keep_files: the functions that the runtime's files are; null: not compiled yet
  std::string url;                  // import.meta.url
  v8::Address* script = nullptr;    // the module's code, for v8x_code_cache
  struct Rejection {
    v8::Address* promise;
    v8::Address* reason;  // null = it was reported before, and is handled now
    v8::Address* frame;  // whose it is, by host.setFrame; null = no one's
  };
  std::vector<Rejection> rejections;  // promises to report: rejected and not handled yet, or handled late
  std::vector<uint8_t> answer;
  bool answer_is_error = false;
  std::atomic<bool> asking{false};  // Go code runs for host.ask: for the signal handler of its own thread
};

namespace v8x {

// What of each kind exists in the process, for tests that look for leaks.
struct Counts {
  std::atomic<int64_t> isolates{0}, contexts{0}, globals{0}, budgets{0};
};
extern Counts live;

// The context whose JavaScript runs on this thread now, or null. One at a time: contexts never
// call each other.
extern thread_local v8x_context* current;

// Ends what runs in the isolate, for good: it has reached a limit of memory.
inline void EndAtLimit(v8x_isolate* i, uint32_t flags = V8X_HEAP_LIMIT) {
  i->flags.fetch_or(flags);
  i->isolate->TerminateExecution();
}

// threads.cc knows which isolates there are.
void Opened(v8::Isolate*);
void Closing(v8::Isolate*);

v8::Address* NewGlobal(v8::Isolate*, v8::Local<v8::Data>);
void DropGlobal(v8::Address** slot);
void DropRejection(v8x_context::Rejection*);
// Releases what a context holds on to.
void DropAll(v8x_context*);

bool NewText(v8::Isolate*, const char* text, size_t n, v8::Local<v8::String>*);
// The text of a string as UTF-8, of a long one its beginning; "" of anything else. For messages.
std::string Utf8(v8::Isolate*, v8::Local<v8::Value>);
// "file:line:column: message" of what was caught.
std::string Describe(v8::Isolate*, v8::Local<v8::Context>, const v8::TryCatch& caught);

// The files of the latest snapshot; null while there is none.
Sources* LatestSources();

// Has Go answer a question, in c->answer. False: the answer is an error. natives.cc.
bool AskGo(v8x_context* c, const Outbox& question);

// Has V8 compile WebAssembly in the isolate only where wasm.cc does it.
void GuardWasm(v8::Isolate*);

// Makes the context of c, and its entry function: snapshot.cc.
bool ContextFromSnapshot(v8x_context*);
bool ContextOfFiles(v8x_context*, const v8x_file*, size_t n);

#ifdef V8X_BREACH
// Gives the context of c the global __breach: breach.cc.
bool AddBreach(v8x_context* c);
#endif

// Runs the files of a feature, in order, in the current context, that of c. "" is none: those run when a context is made.
// False: something was thrown.
bool RunFiles(v8x_context* c, v8::Local<v8::Context>, const std::string& feature, v8::Local<v8::Value> parameters[3]);

Budget* NewBudget(size_t limit);
void DropBudget(Budget*);
void LimitBudget(Budget*, size_t limit);
size_t BudgetUsed(const Budget*);
// Counts bytes that are no ArrayBuffer's among those that are; false, with nothing counted, when that is too much.
bool ChargeBudget(Budget*, size_t bytes);
void UnchargeBudget(Budget*, size_t bytes);
size_t BudgetLimit(const Budget*);
// Puts our allocator in front of the one that v8go gives to every isolate.
void InstallAllocator();

// Gives back what is kept of closed isolates: blocks.cc.
void TrimBlocks();

}  // namespace v8x
