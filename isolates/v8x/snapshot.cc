// The snapshot from which every isolate and context comes: the runtime, already run. V8 writes the heap of a context to
// a blob once per process, and reading it back takes a tenth of the time that running the runtime does.
#include "v8x.h"

#include "natives.h"
#include "turn.h"

#include <deque>
#include <string>

using v8::Local;

namespace v8x {

namespace {

// What new isolates come from: the latest snapshot, null until v8x_snapshot has made one. Those of the one before still
// read that, so that none is ever freed, nor what they refer to.
const v8::StartupData* blob = nullptr;
Sources* latest = nullptr;

// Set by v8x_plain.
thread_local bool plain = false;

// v8go is about to make a context for itself in the isolate that it has just made on this thread.
thread_local bool first_context = false;

// Which AddContext call, and which AddData calls in it: the entry function, the constants, then the function of
// host.lazyValues, if there is one.
constexpr size_t kContext = 0, kEntry = 0, kConstants = 1, kLazy = kConstants + kConstantCount;

// What the runtime's files are functions of: host, internal, primordials.
constexpr int kParameters = 3;

// Compiles text as the body of a function: from its code cache, if there is one. V8 must accept it: nothing that it
// depends on has changed since it was made, and without it cold contexts would be slow for no visible reason.
bool CompileBody(v8::Isolate* isolate, Local<v8::Context> context, Local<v8::String> text, Local<v8::String> name,
                 const std::string& cache, int argc, Local<v8::String>* parameters, Local<v8::Function>* fn) {
  v8::ScriptCompiler::CachedData cached = {reinterpret_cast<const uint8_t*>(cache.data()), static_cast<int>(cache.size())};
  bool has = !cache.empty();
  v8::ScriptCompiler::Source source(text, name, false, has ? &cached : nullptr);
  bool ok = v8::ScriptCompiler::CompileFunction(
      context, &source, static_cast<size_t>(argc), parameters, 0, nullptr,
      has ? v8::ScriptCompiler::kConsumeCodeCache : v8::ScriptCompiler::kNoCompileOptions,
      v8::ScriptCompiler::kNoCacheNoReason).To(fn);
  if (ok && cached.rejected) {
    ThrowType(isolate, "V8 does not accept the code it has compiled itself");
    return false;
  }
  return ok;
}

// Makes file i a function, which is kept after v8x_keep_files.
bool CompileFile(v8x_context* c, Local<v8::Context> context, size_t i, Local<v8::Function>* fn) {
  v8::Isolate* isolate = c->owner->isolate;
  Sources* sources = c->owner->sources;
  const std::string& name = sources->name(i);
  Local<v8::String> text, file, parameters[kParameters];
  if (!sources->Text(isolate, i, &text) || !NewText(isolate, name.data(), name.size(), &file) ||
      !NewText(isolate, "host", 4, &parameters[0]) || !NewText(isolate, "internal", 8, &parameters[1]) ||
      !NewText(isolate, "primordials", 11, &parameters[2]) ||
      !CompileBody(isolate, context, text, file, sources->cache(i), kParameters, parameters, fn)) {
    return false;
  }
  if (!c->files.empty()) c->files[i] = NewGlobal(isolate, *fn);
  return true;
}

// Fetches null, true and false the way any JavaScript would.
bool MakeConstants(v8x_isolate* owner, Local<v8::Context> context) {
  const char text[] = "return [null, true, false]";
  Local<v8::String> source;
  Local<v8::Function> fn;
  Local<v8::Value> list;
  if (!NewText(owner->isolate, text, sizeof text - 1, &source) ||
      !CompileBody(owner->isolate, context, source, source, "", 0, nullptr, &fn) ||
      !fn->Call(owner->isolate, context, fn, 0, nullptr).To(&list)) {
    return false;
  }
  for (uint32_t i = 0; i < kConstantCount; i++) {
    Local<v8::Value> k;
    if (!list.As<v8::Array>()->Get(context, i).To(&k)) return false;
    owner->constants[i] = NewGlobal(owner->isolate, k);
  }
  return true;
}

// Runs the files of no feature in the current context, that of c.
bool RunRuntime(v8x_context* c, Local<v8::Context> context) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Object> host = NewHost(isolate, context);
  Local<v8::Value> parameters[kParameters] = {host, v8::Object::New(isolate), v8::Object::New(isolate)};
  return !host.IsEmpty() && RunFiles(c, context, "", parameters);
}

// Makes c the context to be written, and runs the files in it. Returns what is wrong, or "".
//
// There must be no ArrayBuffer in it, nor a typed array of more than the 64 bytes that V8 keeps in the array itself. Of
// a graph deeper than 32 objects V8 writes the rest later, and what it writes first of a buffer, then, is its bytes,
// which its reader takes for an object: no context could be made (V8 13.6 Serializer::SerializeDeferredObjects).
// Whether a given buffer is that deep depends on hash seeds, so one that works proves nothing.
//
// Nor must there be regular expressions of the same source: the data that they share is what V8 fails to write at such
// depths (its check ends the thread; nothing here can see it coming).
std::string Bootstrap(v8x_context* c, Local<v8::Context> context) {
  v8::Isolate* isolate = c->owner->isolate;
  v8::TryCatch caught(isolate);
  int64_t buffers = isolate->AdjustAmountOfExternalAllocatedMemory(0);
  if (!MakeConstants(c->owner, context) || !RunRuntime(c, context)) {
    return Describe(isolate, context, caught);
  }
  if (!c->entry) return "host.entry was not called";
  if (isolate->AdjustAmountOfExternalAllocatedMemory(0) != buffers) {
    return "the runtime made an ArrayBuffer, or a typed array of over 64 bytes, which V8 cannot keep in a snapshot";
  }
  return "";
}

}  // namespace

Sources* LatestSources() { return latest; }

bool RunFiles(v8x_context* c, Local<v8::Context> context, const std::string& feature, Local<v8::Value>* parameters) {
  v8::Isolate* isolate = c->owner->isolate;
  Sources* sources = c->owner->sources;
  bool found = false;
  for (size_t i = 0; i < sources->size(); i++) {
    if (sources->feature(i) != feature) continue;
    found = true;
    v8::HandleScope handles(isolate);
    Local<v8::Function> fn;
    Local<v8::Value> ignored;
    if (!CompileFile(c, context, i, &fn) || !fn->Call(isolate, context, fn, kParameters, parameters).To(&ignored)) {
      return false;
    }
  }
  if (!found) ThrowType(isolate, "there is no such feature");
  return found;
}

bool ContextFromSnapshot(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Context> context;
  if (!blob || !v8::Context::FromSnapshot(isolate, kContext, {}, nullptr, {}, nullptr, {}, {}).To(&context)) {
    return false;
  }
  c->context = NewGlobal(isolate, context);
  v8::Address* entry = context->GetDataFromSnapshotOnce(kEntry);
  if (!entry) return false;
  c->entry = NewGlobal(isolate, Local<v8::Data>(entry));
  for (size_t i = 0; i < kConstantCount && !c->owner->constants[i]; i++) {
    v8::Address* k = context->GetDataFromSnapshotOnce(kConstants + i);
    if (!k) return false;
    c->owner->constants[i] = NewGlobal(isolate, Local<v8::Data>(k));
  }
  v8::Address* lazy = context->GetDataFromSnapshotOnce(kLazy);
  if (lazy) c->lazy = NewGlobal(isolate, Local<v8::Data>(lazy));
  return true;
}

bool ContextOfFiles(v8x_context* c, const v8x_file* files, size_t n) {
  v8::Isolate* isolate = c->owner->isolate;
  v8::TryCatch caught(isolate);  // the same happens again when the snapshot is made, and is reported then
  Local<v8::Context> context = v8::Context::New(isolate);
  c->context = NewGlobal(isolate, context);
  c->owner->own_sources = std::make_unique<Sources>(files, n);
  c->owner->sources = c->owner->own_sources.get();
  v8x_keep_files(c);
  context->Enter();
  current = c;
  bool ok = (c->owner->constants[0] || MakeConstants(c->owner, context)) && RunRuntime(c, context) && c->entry;
  current = nullptr;
  context->Exit();
  return ok;
}

}  // namespace v8x

using namespace v8x;

extern "C" {

void v8x_plain(int yes) { plain = yes != 0; }

void v8x_keep_files(v8x_context* c) { c->files.resize(c->owner->sources->size()); }

void v8x_use_file_cache(size_t i, const uint8_t* data, size_t len) {
  latest->Cache(i, std::string(reinterpret_cast<const char*>(data), len));
}

void* v8x_file_cache(v8x_context* c, size_t i, const uint8_t** data, size_t* len) {
  if (i >= c->files.size()) return nullptr;
  Entered entered(c->owner->isolate);
  v8::TryCatch caught(c->owner->isolate);
  Local<v8::Function> fn;
  if (!c->files[i] && !CompileFile(c, ContextOf(c), i, &fn)) return nullptr;
  auto* made = v8::ScriptCompiler::CreateCodeCacheForFunction(Local<v8::Function>(c->files[i]));
  if (!made) return nullptr;
  *data = made->data;
  *len = static_cast<size_t>(made->length);
  return made;
}

const char* v8x_snapshot(const v8x_file* files, size_t n) {
  static std::string error;
  static std::deque<Sources> kept;
  Sources* sources = &kept.emplace_back(files, n);
  v8::SnapshotCreator creator(sources->References(), nullptr);
  v8x_isolate owner;
  v8x_context c;
  owner.isolate = creator.GetIsolate();
  owner.sources = sources;
  c.owner = &owner;
  {
    v8::HandleScope handles(owner.isolate);
    // v8go makes a context of its own in every isolate; it comes from this one, which has nothing in it.
    creator.SetDefaultContext(v8::Context::New(owner.isolate), {}, {}, {});
    Local<v8::Context> context = v8::Context::New(owner.isolate);
    c.context = NewGlobal(owner.isolate, context);
    context->Enter();
    current = &c;
    error = Bootstrap(&c, context);
    current = nullptr;
    context->Exit();
    if (error.empty()) {
      creator.AddData(context, *c.entry);
      for (v8::Address* k : owner.constants) creator.AddData(context, *k);
      if (c.lazy) creator.AddData(context, *c.lazy);
      creator.AddContext(context, {}, {}, {});
    }
    DropAll(&c);  // V8 refuses to write a heap that globals point into
    for (auto& k : owner.constants) DropGlobal(&k);
  }
  // What the files have compiled by running is kept. Made on failure too: a creator must not be destroyed without.
  v8::StartupData made = creator.CreateBlob(v8::SnapshotCreator::FunctionCodeHandling::kKeep);
  if (error.empty() && !made.data) error = "V8 made none";
  if (!error.empty()) {
    delete[] made.data;
    return error.c_str();
  }
  static std::deque<v8::StartupData> all;
  all.push_back(made);
  blob = &all.back();
  latest = sources;
  for (size_t i = 0; i < n; i++) sources->Cache(i, "");  // what ran is in the snapshot
  return nullptr;
}

// v8go makes every isolate, with parameters of its own. The linker sends its call here (--wrap), where two are put in.
v8::Isolate* __real__ZN2v87Isolate3NewERKNS0_12CreateParamsE(const void* params);
v8::Isolate* __wrap__ZN2v87Isolate3NewERKNS0_12CreateParamsE(const void* params) {
  if (blob && !plain) {
    char* p = static_cast<char*>(const_cast<void*>(params));
    memcpy(p + v8::Isolate::CreateParams::kSnapshotBlob, &blob, sizeof blob);
    const intptr_t* references = latest->References();
    memcpy(p + v8::Isolate::CreateParams::kExternalReferences, &references, sizeof references);
  }
  first_context = true;
  return __real__ZN2v87Isolate3NewERKNS0_12CreateParamsE(params);
}

}  // extern "C"

#define CONTEXT_NEW                                                                                                  \
  "_ZN2v87Context3NewEPNS_7IsolateEPNS_22ExtensionConfigurationENS_10MaybeLocalINS_14ObjectTemplateEEENS5_INS_"      \
  "5ValueEEENS_33DeserializeInternalFieldsCallbackEPNS_14MicrotaskQueueENS_30DeserializeContextDataCallbackENS_"    \
  "29DeserializeAPIWrapperCallbackE"

// The linker sends all calls here (--wrap). v8go's own context is for values that Go makes, which no code does here, and it would
// cost every isolate a quarter of a millisecond and 150 KB: v8go is content with the empty handle.
Local<v8::Context> RealNew(v8::Isolate*, v8::ExtensionConfiguration*, v8::MaybeLocal<v8::ObjectTemplate>, v8::MaybeLocal<v8::Value>,
                           v8::DeserializeInternalFieldsCallback, v8::MicrotaskQueue*, v8::DeserializeContextDataCallback,
                           v8::DeserializeAPIWrapperCallback) __asm__("__real_" CONTEXT_NEW);
Local<v8::Context> WrappedNew(v8::Isolate*, v8::ExtensionConfiguration*, v8::MaybeLocal<v8::ObjectTemplate>, v8::MaybeLocal<v8::Value>,
                              v8::DeserializeInternalFieldsCallback, v8::MicrotaskQueue*, v8::DeserializeContextDataCallback,
                              v8::DeserializeAPIWrapperCallback) __asm__("__wrap_" CONTEXT_NEW);

Local<v8::Context> WrappedNew(v8::Isolate* isolate, v8::ExtensionConfiguration* extensions, v8::MaybeLocal<v8::ObjectTemplate> global,
                              v8::MaybeLocal<v8::Value> object, v8::DeserializeInternalFieldsCallback fields, v8::MicrotaskQueue* queue,
                              v8::DeserializeContextDataCallback data, v8::DeserializeAPIWrapperCallback wrappers) {
  if (first_context) {
    first_context = false;
    return {};
  }
  return RealNew(isolate, extensions, global, object, fields, queue, data, wrappers);
}
