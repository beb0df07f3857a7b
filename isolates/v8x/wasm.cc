// Modules of WebAssembly (docs/development/adr/0088). V8 compiles none at the word of a guest: the bytes go to Go, which walks through them
// and says what their code is charged. What is compiled is the copy that Go has seen. The isolates of a process share the code of a module.
#include "natives.h"
#include "turn.h"
#include "v8abi_webassembly.h"

#include <mutex>
#include <unordered_map>

namespace v8x {

using v8::Local;
using Info = v8::FunctionCallbackInfo<v8::Value>;

namespace {

// The question for Go, and its answer: 1, the hash of the bytes, and what they are charged, as three little-endian words: bytes of
// the isolate, bytes of the process, functions. Or 0, and why the context has no modules.
constexpr uint8_t kAskWasm = 6;
constexpr size_t kHash = 32, kAnswer = 1 + kHash + 24;
constexpr uint8_t kAskDecode = 9;  // with a hash, before V8 decodes the module
constexpr size_t kMaxModule = 16u << 20;  // isolates/wasm.MaxModule
constexpr size_t kMaxQuestion = kMaxModule + 64;
constexpr size_t kBytesAt = 2 + 5;  // where the bytes begin in the question

// Of all modules that are alive in the process. V8 ends the process's threads when there is no more room for machine code, or for the
// functions of modules.
constexpr size_t kMostCharged = size_t{2} << 30, kMostFunctions = 800'000;
constexpr size_t kMostSaid = 4096;

thread_local bool compiling = false;

bool MayCompile(Local<v8::Context>, Local<v8::String>) { return compiling; }

struct Key {
  std::string hash;
  size_t bytes = 0, most = 0, functions = 0;
};

}  // namespace

// The code of one module, while an isolate of the process has it.
class WasmCode {
 public:
  WasmCode(const Key& key, v8::CompiledWasmModule code) : key_(key), code_(std::move(code)) {}
  ~WasmCode();
  const v8::CompiledWasmModule& code() const { return code_; }

 private:
  Key key_;
  v8::CompiledWasmModule code_;
};

namespace {

// The code of the process.
class Shelf {
 public:
  std::shared_ptr<WasmCode> Find(const std::string& hash) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = all_.find(hash);
    return it == all_.end() ? nullptr : it->second.lock();
  }

  // Room for a module that is to be compiled.
  bool Take(const Key& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes_ + key.most > kMostCharged || functions_ + key.functions > kMostFunctions) return false;
    bytes_ += key.most;
    functions_ += key.functions;
    return true;
  }

  void Give(const Key& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes_ -= key.most;
    functions_ -= key.functions;
    auto it = all_.find(key.hash);
    if (it != all_.end() && it->second.expired()) all_.erase(it);
  }

  void Add(const Key& key, const std::shared_ptr<WasmCode>& code) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_[key.hash] = code;
  }

  // What V8 has said of the bytes: 1 they are a module, 0 they are none, -1 it has not been asked lately.
  int Said(const std::string& hash) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = said_.find(hash);
    return it == said_.end() ? -1 : it->second;
  }

  void Say(const std::string& hash, bool valid) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (said_.size() >= kMostSaid) said_.clear();
    said_[hash] = valid;
  }

  size_t Bytes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<WasmCode>> all_;  // by hash
  std::unordered_map<std::string, bool> said_;
  size_t bytes_ = 0, functions_ = 0;
};

Shelf& shelf = *new Shelf;

enum class Fault { kCompile, kType, kRange };

// Throws PREFIX: TEXT.
void Throw(v8::Isolate* isolate, Fault fault, const std::string& prefix, const std::string& text) {
  std::string all = prefix + ": " + text;
  Local<v8::String> s;
  if (!NewText(isolate, all.data(), all.size(), &s)) return;
  isolate->ThrowException(fault == Fault::kCompile ? v8::Exception::WasmCompileError(s, Local<v8::Value>())
                          : fault == Fault::kType  ? v8::Exception::TypeError(s, Local<v8::Value>())
                                                   : v8::Exception::RangeError(s, Local<v8::Value>()));
}

// Copies the bytes into the question; throws when that cannot be. Only where mayBeEmpty may there be none.
bool Question(v8x_context* c, Local<v8::Value> bytes, const std::string& prefix, Outbox* question, bool mayBeEmpty = false) {
  v8::Isolate* isolate = c->owner->isolate;
  if (!bytes->IsArrayBuffer() && !bytes->IsArrayBufferView()) {
    Throw(isolate, Fault::kType, prefix, "Argument 0 must be a buffer source");
    return false;
  }
  size_t n = bytes->IsArrayBuffer() ? bytes.As<v8::ArrayBuffer>()->ByteLength() : bytes.As<v8::ArrayBufferView>()->ByteLength();
  if (n == 0 && !mayBeEmpty) {
    Throw(isolate, Fault::kCompile, prefix, "BufferSource argument is empty");
    return false;
  }
  if (n > kMaxModule) {
    Throw(isolate, Fault::kCompile, prefix, std::to_string(n) + " bytes of the module, at most " + std::to_string(kMaxModule) + " are allowed");
    return false;
  }
  uint8_t* head = question->Reserve(2);
  if (head) {
    head[0] = kAskWasm;
    head[1] = 1;
    question->Commit(2);
  }
  if (!head || Encode(isolate, ContextOf(c), bytes, question, 0) != Encoded::kOk) {
    Throw(isolate, Fault::kRange, prefix, "no memory for a copy of the module");
    return false;
  }
  return true;
}

size_t Word(const uint8_t* p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return static_cast<size_t>(v);
}

enum class Admitted { kYes, kNo, kNone };

// What Go says of the module in the question. If not kYes, Go refuses it, with the reason in *why; kNone: it would refuse any.
Admitted Admit(v8x_context* c, const Outbox& question, Key* key, std::string* why) {
  bool ok = AskGo(c, question);
  const char* p = reinterpret_cast<const char*>(c->answer.data());
  const size_t n = c->answer.size();
  if (ok && n == kAnswer && p[0] == 1) {
    const uint8_t* words = c->answer.data() + 1 + kHash;
    *key = {std::string(p + 1, kHash), Word(words), Word(words + 8), Word(words + 16)};
    return Admitted::kYes;
  }
  const bool none = ok && n > 0 && p[0] == 0;
  why->assign(p + none, n - none);
  return none ? Admitted::kNone : Admitted::kNo;
}

// Whether V8 may decode the module. It throws when not.
bool MayDecode(v8x_context* c, const Outbox& question, const Key& key, const std::string& prefix) {
  Outbox decode(64);
  const uint32_t size = kHash;
  uint8_t* p = decode.Reserve(kBytesAt + kHash);
  if (!p) {
    Throw(c->owner->isolate, Fault::kRange, prefix, "no memory");
    return false;
  }
  memcpy(p, question.data(), kBytesAt);
  p[0] = kAskDecode;
  memcpy(p + kBytesAt - sizeof size, &size, sizeof size);
  memcpy(p + kBytesAt, key.hash.data(), kHash);
  decode.Commit(kBytesAt + kHash);
  if (AskGo(c, decode)) return true;
  Throw(c->owner->isolate, Fault::kCompile, prefix, std::string(reinterpret_cast<const char*>(c->answer.data()), c->answer.size()));
  return false;
}

// Compiles the module, and charges the isolate until it is closed.
bool Compile(v8x_context* c, const Outbox& question, const Key& key, const std::string& prefix, Local<v8::WasmModuleObject>* module) {
  v8x_isolate* owner = c->owner;
  std::shared_ptr<WasmCode> code = shelf.Find(key.hash);
  if (!ChargeBudget(owner->buffers, key.bytes)) {
    Throw(owner->isolate, Fault::kRange, prefix, "the code of the module takes " + std::to_string((key.bytes >> 20) + 1) +
                                                     " MB of memory, more than the worker has left");
    return false;
  }
  if (!code) {
    if (!MayDecode(c, question, key, prefix)) {
      UnchargeBudget(owner->buffers, key.bytes);
      return false;
    }
    if (!shelf.Take(key)) {
      UnchargeBudget(owner->buffers, key.bytes);
      Throw(owner->isolate, Fault::kRange, prefix, "no room for further modules in this process");
      return false;
    }
    compiling = true;
    bool ok = v8::WasmModuleObject::Compile(owner->isolate, v8::MemorySpan<const uint8_t>(question.data() + kBytesAt, question.size() - kBytesAt))
                  .To(module);
    compiling = false;
    if (!ok) {
      shelf.Give(key);
      UnchargeBudget(owner->buffers, key.bytes);
      return false;
    }
    code = std::make_shared<WasmCode>(key, (*module)->GetCompiledModule());
    shelf.Add(key, code);
    shelf.Say(key.hash, true);
  }
  owner->wasm[key.hash] = code;
  return !module->IsEmpty() || v8::WasmModuleObject::FromCompiledModule(owner->isolate, code->code()).To(module);
}

// A module from bytes, for the API whose name is prefix.
bool NewModule(v8x_context* c, Local<v8::Value> bytes, const std::string& prefix, Local<v8::WasmModuleObject>* module) {
  v8x_isolate* owner = c->owner;
  Outbox question(kMaxQuestion);
  question.ChargeTo(owner->buffers);
  Key key;
  std::string why;
  if (!Question(c, bytes, prefix, &question)) return false;
  if (Admit(c, question, &key, &why) != Admitted::kYes) {
    Throw(owner->isolate, Fault::kCompile, prefix, why);
    return false;
  }
  auto had = owner->wasm.find(key.hash);
  if (had != owner->wasm.end()) return v8::WasmModuleObject::FromCompiledModule(owner->isolate, had->second->code()).To(module);
  return Compile(c, question, key, prefix, module);
}

// What V8 asks first for new WebAssembly.Module(bytes).
bool ModuleConstructor(const Info& info) {
  if (!current) return true;
  if (info.NewTarget()->FullIsUndefined()) return false;  // V8 says what is wrong
  Local<v8::WasmModuleObject> module;
  Local<v8::Value> bytes = info.Length() > 0 ? info[0] : ConstantsOf(current).null;
  if (NewModule(current, bytes, "WebAssembly.Module()", &module)) info.Return(module);
  return true;
}

}  // namespace

WasmCode::~WasmCode() { shelf.Give(key_); }

void GuardWasm(v8::Isolate* isolate) {
  isolate->SetAllowWasmCodeGenerationCallback(MayCompile);
  isolate->SetWasmModuleCallback(ModuleConstructor);
}

// host.compileWasm(bytes, name of the API)
void CompileWasm(const Info& info) {
  Local<v8::WasmModuleObject> module;
  if (info.Length() < 2) return ThrowType(current->owner->isolate, "host.compileWasm: bad call");
  if (NewModule(current, info[0], Utf8(current->owner->isolate, info[1]), &module)) info.Return(module);
}

// host.checkWasm(bytes, name of the API, V8's function that validates bytes): whether they are a module that V8 would compile here. It
// throws when they are no bytes, and when there are no modules at all.
void CheckWasm(const Info& info) {
  v8x_context* c = current;
  v8::Isolate* isolate = c->owner->isolate;
  if (info.Length() < 3 || !info[2]->IsFunction()) return ThrowType(isolate, "host.checkWasm: bad call");
  Constants constants = ConstantsOf(c);
  const std::string prefix = Utf8(isolate, info[1]);
  uint8_t* data;
  size_t n;
  const bool none = BytesOf(info[0], &data, &n) && (n == 0 || n > kMaxModule);
  Local<v8::Value> empty = none ? NewBytes(isolate, 0, &data) : info[0];
  Outbox question(kMaxQuestion);
  question.ChargeTo(c->owner->buffers);
  Key key;
  std::string why;
  if (empty.IsEmpty() || !Question(c, empty, prefix, &question, none)) return;
  const Admitted admitted = Admit(c, question, &key, &why);
  if (admitted == Admitted::kNone) return Throw(isolate, Fault::kCompile, prefix, why);
  if (none || admitted == Admitted::kNo) return info.Return(constants.no);
  int said = shelf.Said(key.hash);
  if (said < 0) {
    if (!MayDecode(c, question, key, prefix)) return;
    Local<v8::Value> argv[1] = {info[0]}, valid;
    if (!info[2].As<v8::Function>()->Call(isolate, ContextOf(c), constants.null, 1, argv).To(&valid)) return;
    said = valid->FullIsTrue();
    shelf.Say(key.hash, said);
  }
  info.Return(said ? constants.yes : constants.no);
}

// host.isWasmModule(value)
void IsWasmModule(const Info& info) {
  Constants constants = ConstantsOf(current);
  info.Return(info.Length() > 0 && info[0]->IsWasmModuleObject() ? constants.yes : constants.no);
}

}  // namespace v8x

extern "C" size_t v8x_wasm_bytes(void) { return v8x::shelf.Bytes(); }
