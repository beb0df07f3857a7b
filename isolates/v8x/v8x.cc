#include "v8x.h"

#include "state.h"

#include <cstdio>
#include <ctime>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

using v8::Local;

namespace v8x {

thread_local v8x_context* current = nullptr;

v8::Address* NewGlobal(v8::Isolate* isolate, Local<v8::Data> v) {
  return v8::api_internal::GlobalizeReference(reinterpret_cast<v8::internal::Isolate*>(isolate), *v.slot());
}

void DropGlobal(v8::Address** slot) {
  if (*slot) v8::api_internal::DisposeGlobal(*slot);
  *slot = nullptr;
}

bool NewText(v8::Isolate* isolate, const char* text, size_t n, Local<v8::String>* s) {
  return v8::String::NewFromUtf8(isolate, n ? text : "", v8::NewStringType::kNormal, static_cast<int>(n)).To(s);
}

namespace {

std::string Utf8(v8::Isolate* isolate, Local<v8::Value> v) {
  if (v.IsEmpty() || !v->FullIsString()) return "";
  Local<v8::String> s = v.As<v8::String>();
  std::string text(s->Utf8LengthV2(isolate), '\0');
  s->WriteUtf8V2(isolate, text.data(), text.size(), v8::String::WriteFlags::kReplaceInvalidUtf8, nullptr);
  return text;
}

}  // namespace

// Runs no JavaScript.
std::string Describe(v8::Isolate* isolate, Local<v8::Context> context, const v8::TryCatch& caught) {
  Local<v8::Message> m = caught.Message();
  if (m.IsEmpty()) return "unknown error";
  int line = 0;
  m->GetLineNumber(context).To(&line);
  return Utf8(isolate, m->GetScriptResourceName()) + ":" + std::to_string(line) + ":" +
         std::to_string(m->GetStartColumn() + 1) + ": " + Utf8(isolate, m->Get());
}

void DropAll(v8x_context* c) {
  for (auto& r : c->rejections) {
    DropGlobal(&r.promise);
    DropGlobal(&r.reason);
  }
  c->rejections.clear();
  for (v8::Address** slot : {&c->evaluation, &c->module, &c->entry, &c->context}) {
    DropGlobal(slot);
  }
}

namespace {

// Ops of the entry function that C++ calls by itself; isolates/js/01_ops.js has them all.
constexpr double kOpModule = 1, kOpUnhandled = 11, kOpDescribe = 12;
// How many unhandled rejections of one turn are reported one by one.
constexpr int kMaxRejections = 16;

// One entry into a context: locks and enters the isolate, and makes the context current. Not for
// nesting.
class Turn {
 public:
  explicit Turn(v8x_context* c)
      : locker_(c->owner->isolate), isolate_(c->owner->isolate), handles_(Entered(isolate_)), context_(c->context) {
    context_->Enter();
    current = c;
    c->owner->out.Clear();
    c->owner->error.clear();
  }
  ~Turn() {
    current = nullptr;
    context_->Exit();
  }

 private:
  // Leaves the isolate after the handle scope is gone and before the lock is.
  struct Enter {
    explicit Enter(v8::Isolate* i) : isolate(i) { isolate->Enter(); }
    ~Enter() { isolate->Exit(); }
    v8::Isolate* isolate;
  };
  v8::Isolate* Entered(Enter& e) { return e.isolate; }

  v8::Locker locker_;
  Enter isolate_;
  v8::HandleScope handles_;
  Local<v8::Context> context_;
};

Local<v8::Context> ContextOf(v8x_context* c) { return Local<v8::Context>(c->context); }

Constants ConstantsOf(v8x_context* c) {
  v8::Address** k = c->owner->constants;
  return Constants{Local<v8::Value>(k[0]), Local<v8::Value>(k[1]), Local<v8::Value>(k[2])};
}

bool CallEntry(v8x_context* c, int argc, Local<v8::Value>* argv) {
  if (!c->entry) return false;
  Local<v8::Value> ignored;
  return Local<v8::Function>(c->entry)
      ->Call(c->owner->isolate, ContextOf(c), ConstantsOf(c).null, argc, argv)
      .To(&ignored);
}

// Tells the runtime of rejections that this turn left unhandled.
void ReportRejections(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  for (int told = 0; !c->rejections.empty(); told++) {
    auto batch = std::move(c->rejections);
    c->rejections.clear();
    for (auto& r : batch) {
      if (told < kMaxRejections) {
        Local<v8::Value> argv[3] = {v8::Number::New(isolate, kOpUnhandled), Local<v8::Value>(r.promise),
                                    Local<v8::Value>(r.reason)};
        CallEntry(c, 3, argv);
      }
      DropGlobal(&r.promise);
      DropGlobal(&r.reason);
    }
  }
}

// What every call ends with.
void Finish(v8x_context* c, const v8::TryCatch& caught, v8x_result* r) {
  v8x_isolate* owner = c->owner;
  if (caught.HasCaught() && !caught.HasTerminated()) owner->error = Describe(owner->isolate, ContextOf(c), caught);
  r->terminated = caught.HasTerminated() || owner->isolate->IsExecutionTerminating();
  r->threw = caught.HasCaught() && !caught.HasTerminated();
  r->error = owner->error.c_str();
  r->out = owner->out.data();
  r->out_len = owner->out.size();
}

size_t NearHeapLimit(void* data, size_t current_limit, size_t) {
  v8x_isolate* i = static_cast<v8x_isolate*>(data);
  i->flags.fetch_or(V8X_HEAP_LIMIT);
  i->isolate->TerminateExecution();
  return current_limit + i->heap_slack;
}

// Ids of the threads that are parked. A process with so many has long been replaced.
constexpr size_t kMaxParked = 64;
std::atomic<int32_t> parked[kMaxParked];
// While the process starts nothing is worth keeping it alive for.
std::atomic<bool> starting{false};
std::atomic<size_t> parked_next{0}, parked_count{0};

// V8 aborts the process when a fatal error handler returns. This one does not return: the thread
// is lost, with the isolate on it, but the process lives (notes: parking).
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

void OnFatal(const char* where, const char* what) { Park(where, what); }
void OnOOM(const char* where, const v8::OOMDetails& details) { Park(where, details.detail); }
void OnV8Fatal(const char* file, int, const char* what) { Park(file, what); }

void OnReject(v8::PromiseRejectMessage m) {
  v8x_context* c = current;
  if (!c) return;
  if (m.GetEvent() == v8::kPromiseRejectWithNoHandler) {
    if (c->rejections.size() >= 1000) return;  // a storm: what is lost is only its report
    v8::Isolate* isolate = c->owner->isolate;
    c->rejections.push_back({NewGlobal(isolate, m.GetPromise()), NewGlobal(isolate, m.GetValue())});
  } else if (m.GetEvent() == v8::kPromiseHandlerAddedAfterReject) {
    for (size_t i = c->rejections.size(); i-- > 0;) {
      if (*c->rejections[i].promise != *m.GetPromise().slot()) continue;
      DropGlobal(&c->rejections[i].promise);
      DropGlobal(&c->rejections[i].reason);
      c->rejections.erase(c->rejections.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
  }
}

v8::MaybeLocal<v8::Module> RefuseImport(Local<v8::Context>, Local<v8::String> specifier, Local<v8::FixedArray>,
                                        Local<v8::Module>) {
  v8::Isolate* isolate = current->owner->isolate;
  std::string text = "cannot import \"" + Utf8(isolate, specifier) + "\": imports are bundled at deploy";
  Local<v8::String> s;
  if (v8::String::NewFromUtf8(isolate, text.data(), v8::NewStringType::kNormal, static_cast<int>(text.size())).To(&s)) {
    isolate->ThrowException(v8::Exception::TypeError(s, Local<v8::Value>()));
  }
  return {};
}

// What has become of the module's evaluation.
int ModuleState(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Promise> evaluation(c->evaluation);
  if (evaluation->State() == v8::Promise::kPending) return V8X_PENDING;
  bool rejected = evaluation->State() == v8::Promise::kRejected;
  if (rejected) evaluation->MarkAsHandled();
  Local<v8::Value> argv[2] = {
      v8::Number::New(isolate, rejected ? kOpDescribe : kOpModule),
      rejected ? evaluation->Result() : Local<v8::Module>(c->module)->GetModuleNamespace(),
  };
  CallEntry(c, 2, argv);
  DropGlobal(&c->evaluation);
  DropGlobal(&c->module);
  return rejected ? V8X_REJECTED : V8X_EVALUATED;
}

int Evaluate(v8x_context* c, Local<v8::String> name, Local<v8::String> text) {
  v8::Isolate* isolate = c->owner->isolate;
  v8::ScriptCompiler::Source source(text, name, true);
  Local<v8::Module> module;
  bool ok = false;
  if (!v8::ScriptCompiler::CompileModule(isolate, &source, v8::ScriptCompiler::kNoCompileOptions,
                                         v8::ScriptCompiler::kNoCacheNoReason).To(&module) ||
      !module->InstantiateModule(ContextOf(c), RefuseImport, nullptr).To(&ok) || !ok) {
    return V8X_COMPILE_ERROR;
  }
  Local<v8::Value> evaluation;
  if (!module->Evaluate(ContextOf(c)).To(&evaluation)) return V8X_COMPILE_ERROR;
  c->module = NewGlobal(isolate, module);
  c->evaluation = NewGlobal(isolate, evaluation);
  return ModuleState(c);
}

int EndModule(v8x_context* c, int state, const v8::TryCatch& caught, v8x_result* r) {
  if (!caught.HasCaught()) ReportRejections(c);
  Finish(c, caught, r);
  return r->terminated ? V8X_TERMINATED : state;
}

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

const char* v8x_version(void) { return v8::V8::GetVersion(); }

void v8x_init(void) {
  v8::V8::SetFatalErrorHandler(OnV8Fatal);
  InstallAllocator();
}

v8x_isolate* v8x_attach(void* isolate, size_t heap_slack, size_t buffer_limit) {
  v8x_isolate* i = new v8x_isolate;
  i->isolate = static_cast<v8::Isolate*>(isolate);
  i->heap_slack = heap_slack;
  i->buffers = NewBudget(buffer_limit);
  v8::Locker locker(i->isolate);
  i->isolate->AddNearHeapLimitCallback(NearHeapLimit, i);  // V8 asks the last one added: not v8go's
  i->isolate->SetOOMErrorHandler(OnOOM);
  i->isolate->SetFatalErrorHandler(OnFatal);
  i->isolate->SetPromiseRejectCallback(OnReject);
  return i;
}

void v8x_detach(v8x_isolate* i) {
  {
    v8::Locker locker(i->isolate);
    for (auto& k : i->constants) DropGlobal(&k);
  }
}

void v8x_isolate_free(v8x_isolate* i) {
  DropBudget(i->buffers);
  delete i;
}

uint32_t v8x_flags(v8x_isolate* i) { return i->flags.load(); }

size_t v8x_buffer_bytes(v8x_isolate* i) { return BudgetUsed(i->buffers); }

void v8x_low_memory(v8x_isolate* i) {
  v8::Locker locker(i->isolate);
  i->isolate->Enter();
  i->isolate->LowMemoryNotification();
  i->isolate->Exit();
}

v8x_context* v8x_context_new(v8x_isolate* owner, uintptr_t handle) {
  v8::Isolate* isolate = owner->isolate;
  v8x_context* c = new v8x_context;
  c->owner = owner;
  c->handle = handle;
  bool ok;
  v8::Locker locker(isolate);
  isolate->Enter();
  {
    v8::HandleScope handles(isolate);
    ok = ContextFromSnapshot(c);
    if (ok) {
      ContextOf(c)->AllowCodeGenerationFromStrings(false);
    } else {
      DropAll(c);
    }
  }
  isolate->Exit();
  if (ok) return c;
  delete c;
  return nullptr;
}

void v8x_context_free(v8x_context* c) {
  {
    v8::Locker locker(c->owner->isolate);
    DropAll(c);
  }
  delete c;
}

int v8x_module(v8x_context* c, const char* name, size_t name_len, const char* text, size_t text_len, v8x_result* r) {
  Turn turn(c);
  v8::TryCatch caught(c->owner->isolate);
  Local<v8::String> file, source;
  int state = V8X_COMPILE_ERROR;
  if (NewText(c->owner->isolate, name, name_len, &file) && NewText(c->owner->isolate, text, text_len, &source)) {
    state = Evaluate(c, file, source);
  }
  return EndModule(c, state, caught, r);
}

int v8x_module_poll(v8x_context* c, v8x_result* r) {
  Turn turn(c);
  v8::TryCatch caught(c->owner->isolate);
  return EndModule(c, ModuleState(c), caught, r);
}

void v8x_call(v8x_context* c, const uint8_t* in, size_t in_len, const uint8_t* body, size_t body_len, v8x_result* r) {
  Turn turn(c);
  v8::Isolate* isolate = c->owner->isolate;
  v8::TryCatch caught(isolate);
  Constants constants = ConstantsOf(c);
  Reader reader(isolate, constants, in, in_len, body, body_len);
  constexpr int kMaxArgs = 256;
  Local<v8::Value> argv[kMaxArgs];
  int argc = reader.Byte();
  for (int i = 0; i < argc && reader.ok(); i++) argv[i] = reader.Value();
  if (reader.ok()) {
    CallEntry(c, argc, argv);
    if (!caught.HasCaught() && !c->rejections.empty()) ReportRejections(c);
  }
  Finish(c, caught, r);
  if (!reader.ok()) {
    c->owner->error = "no memory in the isolate for the event";
    r->error = c->owner->error.c_str();
    r->threw = 1;
  }
}

void v8x_answer(v8x_context* c, const uint8_t* bytes, size_t len, int is_error) {
  c->answer.assign(bytes, bytes + len);
  c->answer_is_error = is_error != 0;
}

}  // extern "C"
