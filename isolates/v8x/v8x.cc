#include "v8x.h"

#include "turn.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <malloc.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

using v8::Local;

namespace v8x {

thread_local v8x_context* current = nullptr;
Counts live;

v8::Address* NewGlobal(v8::Isolate* isolate, Local<v8::Data> v) {
  live.globals.fetch_add(1, std::memory_order_relaxed);
  return v8::api_internal::GlobalizeReference(reinterpret_cast<v8::internal::Isolate*>(isolate), *v.slot());
}

void DropGlobal(v8::Address** slot) {
  if (!*slot) return;
  live.globals.fetch_sub(1, std::memory_order_relaxed);
  v8::api_internal::DisposeGlobal(*slot);
  *slot = nullptr;
}

bool NewText(v8::Isolate* isolate, const char* text, size_t n, Local<v8::String>* s) {
  return v8::String::NewFromUtf8(isolate, n ? text : "", v8::NewStringType::kNormal, static_cast<int>(n)).To(s);
}

std::string Utf8(v8::Isolate* isolate, Local<v8::Value> v) {
  if (v.IsEmpty() || !v->FullIsString()) return "";
  Local<v8::String> s = v.As<v8::String>();
  constexpr size_t kMost = 8192;
  char text[kMost];
  return std::string(
      text, s->WriteUtf8V2(isolate, text, kMost, v8::String::WriteFlags::kReplaceInvalidUtf8, nullptr));
}

// Runs no JavaScript.
std::string Describe(v8::Isolate* isolate, Local<v8::Context> context, const v8::TryCatch& caught) {
  Local<v8::Message> m = caught.Message();
  if (m.IsEmpty()) return "unknown error";
  int line = 0;
  m->GetLineNumber(context).To(&line);
  return Utf8(isolate, m->GetScriptResourceName()) + ":" + std::to_string(line) + ":" +
         std::to_string(m->GetStartColumn() + 1) + ": " + Utf8(isolate, m->Get());
}

void DropRejection(v8x_context::Rejection* r) {
  for (v8::Address** slot : {&r->promise, &r->reason, &r->frame}) DropGlobal(slot);
}

void DropAll(v8x_context* c) {
  for (auto& r : c->rejections) DropRejection(&r);
  c->rejections.clear();
  for (auto& file : c->files) DropGlobal(&file);
  c->files.clear();
  for (v8::Address** slot : {&c->evaluation, &c->module, &c->script, &c->entry, &c->lazy, &c->context}) {
    DropGlobal(slot);
  }
}

namespace {

// What V8 takes for the young generation out of a heap of 8 to 256 MB. The rest is the old one's, and only that is what
// V8 calls the limit from then on.
constexpr size_t kYoungGeneration = 1536 << 10;

// The bytes of the pages of all spaces of the heap, each as many times as times says of its name.
template <typename Times>
size_t BytesOfSpaces(v8::Isolate* isolate, Times times) {
  size_t bytes = 0;
  for (size_t n = isolate->NumberOfHeapSpaces(), i = 0; i < n; i++) {
    v8::HeapSpaceStatistics space;
    if (isolate->GetHeapSpaceStatistics(&space, i)) bytes += times(std::string_view(space.space_name())) * space.space_size();
  }
  return bytes;
}

// What V8 compares with the limit: all spaces but the young generation's and the one that all isolates share.
size_t OldGenerationBytes(v8::Isolate* isolate) {
  return BytesOfSpaces(isolate, [](std::string_view name) { return name != "read_only_space" && name.substr(0, 3) != "new"; });
}

// When the code of all isolates takes more than kCodeOfAll of its range, what runs in an isolate with more than
// kCodeOfOne ends (docs/development/adr/0040).
constexpr size_t kCodeOfOne = 8 << 20, kCodeOfAll = size_t{V8X_MAX_CODE} / 8 * 7;
std::atomic<size_t> code_of_all{0};

// Bytes that the machine code of the isolate takes of that range. A large piece of code, of over 128 KiB, begins at a
// multiple of 256 KiB: up to as much again stays empty behind it.
size_t MeasureCode(v8::Isolate* isolate) {
  return BytesOfSpaces(isolate, [](std::string_view name) { return name == "code_space" ? 1 : name == "code_large_object_space" ? 2 : 0; });
}

size_t CodeBytes(v8x_isolate* i) {
  size_t now = MeasureCode(i->isolate);
  code_of_all += now - i->code;
  return i->code = now;
}

// V8 has collected all garbage of the isolate.
void OnCollected(v8::Isolate*, v8::GCType, v8::GCCallbackFlags, void* data) {
  v8x_isolate* i = static_cast<v8x_isolate*>(data);
  i->collections++;
  if (CodeBytes(i) > kCodeOfOne && code_of_all > kCodeOfAll) EndAtLimit(i, V8X_HEAP_LIMIT | V8X_CODE_LIMIT);
}

// V8 asks once, and gives up ("Reached heap limit") if the answer is less than what the heap has by then.
size_t NearHeapLimit(void* data, size_t current_limit, size_t) {
  v8x_isolate* i = static_cast<v8x_isolate*>(data);
  if (!i->old_limit) i->old_limit = current_limit;
  size_t limit = i->old_limit + i->others;
  size_t bytes = OldGenerationBytes(i->isolate);
  if (current_limit < limit && bytes + kYoungGeneration <= limit) return limit;
  EndAtLimit(i);
  return std::max({current_limit, limit, bytes}) + i->heap_slack;
}

// Ids of the threads that are parked. A process with so many has long been replaced.
constexpr size_t kMaxParked = 64;
std::atomic<int32_t> parked[kMaxParked];
// While the process starts nothing is worth keeping it alive for.
std::atomic<bool> starting{false};
std::atomic<size_t> parked_next{0}, parked_count{0};

// V8 aborts the process when a fatal error handler returns. This one does not return: the thread
// is lost, with the isolate on it, but the process lives (docs/development/adr/0021).
[[noreturn]] void Park(const char* where, const char* what) {
  fprintf(stderr, "pinwheel: V8 lost a thread: %s: %s\n", where ? where : "", what ? what : "");
  if (starting) _exit(70);  // EX_SOFTWARE
  size_t i = parked_next.fetch_add(1);
  if (i < kMaxParked) parked[i].store(static_cast<int32_t>(syscall(SYS_gettid)));
  parked_count.fetch_add(1);
  for (;;) {
    timespec hour = {3600, 0};
    nanosleep(&hour, nullptr);
  }
}

// Makes a context that make fills in, or null.
template <class Make>
v8x_context* NewContext(v8x_isolate* owner, uintptr_t handle, Make make) {
  v8x_context* c = new v8x_context;
  c->owner = owner;
  c->handle = handle;
  Entered entered(owner->isolate);
  bool made = make(c);
#ifdef V8X_BREACH
  made = made && AddBreach(c);
#endif
  if (!made) {
    DropAll(c);
    delete c;
    return nullptr;
  }
  ContextOf(c)->AllowCodeGenerationFromStrings(false);
  live.contexts.fetch_add(1, std::memory_order_relaxed);
  return c;
}

void OnFatal(const char* where, const char* what) { Park(where, what); }
void OnOOM(const char* where, const v8::OOMDetails& details) { Park(where, details.detail); }
void OnV8Fatal(const char* file, int, const char* what) { Park(file, what); }

}  // namespace
}  // namespace v8x

using namespace v8x;

extern "C" {

void v8x_starting(int yes) { starting = yes != 0; }

size_t v8x_parked(int32_t* tids, size_t max) {
  size_t n = parked_count.load();
  for (size_t i = 0; i < n && i < max && i < kMaxParked; i++) tids[i] = parked[i].load();
  return n;
}

void v8x_count_live(v8x_live* l) {
  l->isolates = live.isolates.load();
  l->contexts = live.contexts.load();
  l->globals = live.globals.load();
  l->budgets = live.budgets.load();
}

void v8x_trim(void) {
  TrimBlocks();
  malloc_trim(0);
}

size_t v8x_allocated(void) { return mallinfo2().uordblks; }

const char* v8x_version(void) { return v8::V8::GetVersion(); }

// glibc raises both by itself, to 32 and 64 MB, when it has given back a block as large; from then on each of its arenas, one
// for almost every thread, keeps as much forever: malloc_trim does not look there. Setting one stops that.
constexpr int kMapFrom = 1 << 20, kKeepFree = 4 << 20;

// V8 opens /dev/urandom otherwise and reads 4 KB of it, seven times for an isolate. It asks for a few bytes, and getentropy gives 256.
static bool Entropy(unsigned char* bytes, size_t length) { return length <= 256 && getentropy(bytes, length) == 0; }

void v8x_init(void) {
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TRIM_THRESHOLD, kKeepFree);
  v8::V8::SetFatalErrorHandler(OnV8Fatal);
  v8::V8::SetEntropySource(Entropy);
  InstallAllocator();
  v8x_throttle_init();
}

v8x_isolate* v8x_attach(void* isolate, size_t heap_slack, size_t buffer_limit) {
  v8x_isolate* i = new v8x_isolate;
  live.isolates.fetch_add(1, std::memory_order_relaxed);
  i->isolate = static_cast<v8::Isolate*>(isolate);
  i->heap_slack = heap_slack;
  i->buffers = NewBudget(buffer_limit);
  i->buffer_limit = buffer_limit;
  i->out.ChargeTo(i->buffers);
  i->sources = LatestSources();
  v8::Locker locker(i->isolate);
  i->isolate->AddNearHeapLimitCallback(NearHeapLimit, i);  // V8 asks the last one added: not v8go's
  i->isolate->AddGCEpilogueCallback(OnCollected, i, v8::kGCTypeMarkSweepCompact);
  i->isolate->SetOOMErrorHandler(OnOOM);
  i->isolate->SetFatalErrorHandler(OnFatal);
  i->isolate->SetPromiseRejectCallback(OnReject);
  i->isolate->SetHostImportModuleDynamicallyCallback(RejectImport);
  i->isolate->SetHostInitializeImportMetaObjectCallback(DescribeModule);
  GuardWasm(i->isolate);
  Opened(i->isolate);
  return i;
}

void v8x_set_limits(v8x_isolate* i, size_t heap, size_t buffer_limit) {
  i->buffer_limit = buffer_limit;
  LimitBudget(i->buffers, buffer_limit);
  // V8 lowers the limit of an isolate when a callback is removed, to restore what the callback had raised. It never
  // raises it but by a callback: NearHeapLimit does that, when the limit of birth is reached.
  i->old_limit = heap - kYoungGeneration;
  v8::Locker locker(i->isolate);
  i->isolate->RemoveNearHeapLimitCallback(NearHeapLimit, i->old_limit);
  i->isolate->AddNearHeapLimitCallback(NearHeapLimit, i);
}

void v8x_set_others(v8x_isolate* i, size_t bytes) {
  i->others = bytes;
  LimitBudget(i->buffers, i->buffer_limit + bytes);
}

void v8x_detach(v8x_isolate* i) {
  Closing(i->isolate);
  {
    v8::Locker locker(i->isolate);
    for (auto& k : i->constants) DropGlobal(&k);
  }
}

void v8x_isolate_free(v8x_isolate* i) {
  live.isolates.fetch_sub(1, std::memory_order_relaxed);
  Budget* buffers = i->buffers;
  code_of_all -= i->code;
  delete i;  // and with it what is charged to them
  DropBudget(buffers);
}

void v8x_forget(v8x_isolate* i) { i->out.Clear(); }

uint32_t v8x_flags(v8x_isolate* i) { return i->flags.load(); }

size_t v8x_buffer_bytes(v8x_isolate* i) { return BudgetUsed(i->buffers); }

uint32_t v8x_collections(v8x_isolate* i) { return i->collections; }

size_t v8x_code_bytes(v8x_isolate* i) { return CodeBytes(i); }

void v8x_low_memory(v8x_isolate* i) {
  v8::Locker locker(i->isolate);
  i->isolate->Enter();
  i->isolate->LowMemoryNotification();
  i->isolate->Exit();
}

void v8x_collect(v8x_isolate* i) {
  v8::Locker locker(i->isolate);
  i->isolate->Enter();
  // One round, and a second where much is left; LowMemoryNotification makes up to seven.
  i->isolate->MemoryPressureNotification(v8::MemoryPressureLevel::kCritical);
  i->isolate->Exit();
}

v8x_context* v8x_context_new(v8x_isolate* owner, uintptr_t handle) {
  return NewContext(owner, handle, [](v8x_context* c) { return ContextFromSnapshot(c); });
}

v8x_context* v8x_context_of(v8x_isolate* owner, uintptr_t handle, const v8x_file* files, size_t n) {
  return NewContext(owner, handle, [=](v8x_context* c) { return ContextOfFiles(c, files, n); });
}

void v8x_context_free(v8x_context* c) {
  {
    v8::Locker locker(c->owner->isolate);
    DropAll(c);
  }
  live.contexts.fetch_sub(1, std::memory_order_relaxed);
  delete c;
}

}  // extern "C"
