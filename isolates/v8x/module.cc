// The worker's module: compiled, from source or from V8's code cache, instantiated and evaluated.
#include "turn.h"

#include <cctype>
#include <cstring>
#include <vector>

using v8::Local;

namespace v8x {

namespace {

struct Bytes {
  const uint8_t* data;
  size_t len;
};

// The error of an import that the bundler has left in the code, or an empty handle.
Local<v8::Value> ImportError(v8::Isolate* isolate, Local<v8::String> specifier) {
  std::string name = Utf8(isolate, specifier);
  constexpr size_t kMost = 200;
  if (name.size() > kMost) {
    size_t end = kMost;
    while ((name[end] & 0xc0) == 0x80) end--;  // not in the middle of a character
    name = name.substr(0, end) + "\u2026";
  }
  std::string text = "cannot import \"" + name + "\": imports are bundled at deploy";
  Local<v8::String> s;
  if (!NewText(isolate, text.data(), text.size(), &s)) return {};
  return v8::Exception::TypeError(s, Local<v8::Value>());
}

// The runtime's modules, those that a bundle may import. The runtime says what they export.
constexpr const char* kBuiltins[] = {"cloudflare:workers", "pinwheel:node", "cloudflare:sockets", "pinwheel:wasm"};

// A name and its value, as the runtime lists them one after the other.
struct Export {
  Local<v8::String> name;
  Local<v8::Value> value;
};

// What the runtime's module of this index exports.
bool BuiltinExports(v8x_context* c, size_t which, std::vector<Export>* out) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Value> argv[2] = {v8::Number::New(isolate, kOpBuiltin), v8::Number::New(isolate, static_cast<double>(which))};
  Local<v8::Value> answer;
  if (!CallEntry(c, 2, argv, &answer) || !answer->IsArray()) return false;
  Local<v8::Array> list = answer.As<v8::Array>();
  for (uint32_t i = 0; i + 1 < list->Length(); i += 2) {
    Local<v8::Value> name, value;
    if (!list->Get(ContextOf(c), i).To(&name) || !list->Get(ContextOf(c), i + 1).To(&value)) return false;
    out->push_back({name.As<v8::String>(), value});
  }
  return true;
}

// Gives the module its values, when it is evaluated: before V8 has linked it there is nowhere to put them. V8 wants a
// promise.
template <size_t which>
v8::MaybeLocal<v8::Value> EvaluateBuiltin(Local<v8::Context> context, Local<v8::Module> module) {
  v8x_context* c = current;
  std::vector<Export> exports;
  Local<v8::Promise::Resolver> done;
  bool ok;
  if (!c || !BuiltinExports(c, which, &exports) || !v8::Promise::Resolver::New(context).To(&done)) return {};
  for (const Export& e : exports) {
    if (!module->SetSyntheticModuleExport(c->owner->isolate, e.name, e.value).To(&ok)) return {};
  }
  if (!done->Resolve(context, ConstantsOf(c).null).To(&ok)) return {};
  return Local<v8::Value>(done->GetPromise());
}

template <size_t which>
v8::MaybeLocal<v8::Module> Builtin(v8x_context* c, Local<v8::String> specifier) {
  std::vector<Export> exports;
  if (!c || !BuiltinExports(c, which, &exports)) return {};
  std::vector<Local<v8::String>> names;
  for (const Export& e : exports) names.push_back(e.name);
  return v8::Module::CreateSyntheticModule(
      c->owner->isolate, specifier, v8::MemorySpan<const Local<v8::String>>(names.data(), names.size()), EvaluateBuiltin<which>);
}

v8::MaybeLocal<v8::Module> ResolveImport(Local<v8::Context>, Local<v8::String> specifier, Local<v8::FixedArray>,
                                         Local<v8::Module>) {
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  std::string name = Utf8(isolate, specifier);
  if (name == kBuiltins[0]) return Builtin<0>(current, specifier);
  if (name == kBuiltins[1]) return Builtin<1>(current, specifier);
  if (name == kBuiltins[2]) return Builtin<2>(current, specifier);
  if (name == kBuiltins[3]) return Builtin<3>(current, specifier);
  Local<v8::Value> error = ImportError(isolate, specifier);
  if (!error.IsEmpty()) isolate->ThrowException(error);
  return {};
}

// name as the path of a URL.
std::string FileURL(const char* name, size_t len) {
  std::string url = "file:///";
  for (size_t i = 0; i < len; i++) {
    unsigned char c = static_cast<unsigned char>(name[i]);
    if (isalnum(c) || strchr("-._~/", c)) {
      url += static_cast<char>(c);
    } else {
      const char* hex = "0123456789ABCDEF";
      url += {'%', hex[c >> 4], hex[c & 15]};
    }
  }
  return url;
}

// What has become of the module's evaluation.
int ModuleState(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Promise> evaluation(c->evaluation);
  if (evaluation->State() == v8::Promise::kPending) return V8X_PENDING;
  bool rejected = evaluation->State() == v8::Promise::kRejected;
  if (rejected) {
    evaluation->MarkAsHandled();
    ForgetRejection(c, evaluation);
  }
  Local<v8::Value> argv[2] = {
      v8::Number::New(isolate, rejected ? kOpDescribe : kOpModule),
      rejected ? evaluation->Result() : Local<v8::Module>(c->module)->GetModuleNamespace(),
  };
  CallEntry(c, 2, argv);
  DropGlobal(&c->evaluation);
  DropGlobal(&c->module);
  return rejected ? V8X_REJECTED : V8X_EVALUATED;
}

// Compiles the module, from its code cache if there is one that V8 accepts: it then has the bytecode of the module and
// of every function that had been compiled when the cache was made, and parses nothing.
bool Compile(v8x_context* c, Local<v8::String> name, Local<v8::String> text, const Bytes& cache, bool* rejected,
             Local<v8::Module>* module) {
  v8::ScriptCompiler::CachedData cached = {cache.data, static_cast<int>(cache.len)};
  v8::ScriptCompiler::Source source(text, name, true, cache.len > 0 ? &cached : nullptr);
  bool ok = v8::ScriptCompiler::CompileModule(
      c->owner->isolate, &source,
      cache.len > 0 ? v8::ScriptCompiler::kConsumeCodeCache : v8::ScriptCompiler::kNoCompileOptions,
      v8::ScriptCompiler::kNoCacheNoReason).To(module);
  *rejected = cached.rejected;
  return ok;
}

int Evaluate(v8x_context* c, Local<v8::String> name, Local<v8::String> text, const Bytes& cache, bool* rejected) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Module> module;
  bool ok = false;
  if (!Compile(c, name, text, cache, rejected, &module) ||
      !module->InstantiateModule(ContextOf(c), ResolveImport, nullptr).To(&ok) || !ok) {
    return V8X_COMPILE_ERROR;
  }
  c->script = NewGlobal(isolate, module->GetUnboundModuleScript());  // V8 tells only before it is evaluated
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

// What is bundled needs no import(): esbuild makes it a call. What comes here was computed.
v8::MaybeLocal<v8::Promise> RejectImport(Local<v8::Context> context, Local<v8::Data>, Local<v8::Value>,
                                         Local<v8::String> specifier, Local<v8::FixedArray>) {
  Local<v8::Value> error = ImportError(v8::Isolate::GetCurrent(), specifier);
  Local<v8::Promise::Resolver> resolver;
  bool ok;
  if (error.IsEmpty() || !v8::Promise::Resolver::New(context).To(&resolver) ||
      !resolver->Reject(context, error).To(&ok)) {
    return {};
  }
  return resolver->GetPromise();
}

// Gives import.meta its url, a file at the root of nowhere: new URL("./x", import.meta.url) works, and what libraries
// that look at its scheme do with files.
void DescribeModule(Local<v8::Context> context, Local<v8::Module>, Local<v8::Object> meta) {
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  Local<v8::String> key, url;
  bool ok;
  if (current && NewText(isolate, "url", 3, &key) &&
      NewText(isolate, current->url.data(), current->url.size(), &url)) {
    meta->CreateDataProperty(context, key, url).To(&ok);
  }
}

}  // namespace v8x

using namespace v8x;

extern "C" {

int v8x_module(v8x_context* c, const char* name, size_t name_len, size_t prefix_len, const char* text, size_t text_len,
               const uint8_t* cache, size_t cache_len, v8x_result* r) {
  Turn turn(c);
  v8::TryCatch caught(c->owner->isolate);
  c->url = FileURL(name + prefix_len, name_len - prefix_len);
  Local<v8::String> file, source;
  int state = V8X_COMPILE_ERROR;
  bool rejected = false;
  if (NewText(c->owner->isolate, name, name_len, &file) && NewText(c->owner->isolate, text, text_len, &source)) {
    state = Evaluate(c, file, source, Bytes{cache, cache_len}, &rejected);
  }
  state = EndModule(c, state, caught, r);
  r->cache_rejected = rejected;
  return state;
}

int v8x_module_poll(v8x_context* c, v8x_result* r) {
  Turn turn(c);
  v8::TryCatch caught(c->owner->isolate);
  return EndModule(c, ModuleState(c), caught, r);
}

void* v8x_code_cache(v8x_context* c, const uint8_t** data, size_t* len) {
  if (!c->script) return nullptr;
  Entered entered(c->owner->isolate);
  Local<v8::UnboundModuleScript> script(c->script);
  v8::ScriptCompiler::CachedData* made = v8::ScriptCompiler::CreateCodeCache(script);
  if (!made) return nullptr;
  *data = made->data;
  *len = static_cast<size_t>(made->length);
  return made;
}

void v8x_code_cache_free(void* made) { delete static_cast<v8::ScriptCompiler::CachedData*>(made); }

}  // extern "C"
