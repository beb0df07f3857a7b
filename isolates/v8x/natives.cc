#include "natives.h"

#include "state.h"

#include <cmath>
#include <ctime>
#include <sys/random.h>
#include <vector>

extern "C" void v8xAsk(uintptr_t handle, v8x_context*, uint8_t* in, size_t len);

namespace v8x {

using v8::Local;
using Info = v8::FunctionCallbackInfo<v8::Value>;

bool BytesOf(Local<v8::Value> v, uint8_t** data, size_t* n) {
  if (v->IsArrayBufferView()) {
    Local<v8::ArrayBufferView> view = v.As<v8::ArrayBufferView>();
    *n = view->ByteLength();
    *data = *n == 0 ? nullptr : static_cast<uint8_t*>(view->Buffer()->Data()) + view->ByteOffset();
    return true;
  }
  if (v->IsArrayBuffer()) {
    Local<v8::ArrayBuffer> buffer = v.As<v8::ArrayBuffer>();
    *n = buffer->ByteLength();
    *data = static_cast<uint8_t*>(buffer->Data());
    return true;
  }
  return false;
}

namespace {

Local<v8::String> Ascii(v8::Isolate* isolate, const char* text) {
  Local<v8::String> s;
  v8::String::NewFromOneByte(isolate, reinterpret_cast<const uint8_t*>(text), v8::NewStringType::kNormal,
                             static_cast<int>(strlen(text))).To(&s);
  return s;
}

void ThrowRange(v8::Isolate* isolate, const char* text) {
  isolate->ThrowException(v8::Exception::RangeError(Ascii(isolate, text), Local<v8::Value>()));
}

}  // namespace

void ThrowType(v8::Isolate* isolate, const char* text) {
  isolate->ThrowException(v8::Exception::TypeError(Ascii(isolate, text), Local<v8::Value>()));
}

namespace {

// Appends op, count and the arguments; throws and takes it all back on failure.
bool Append(const Info& info, Outbox* out) {
  v8::Isolate* isolate = current->owner->isolate;
  size_t start = out->size();
  int argc = info.Length();
  uint8_t* p = out->Reserve(2);
  if (argc < 1 || argc > 200 || !info[0]->IsNumber() || !p) {
    ThrowType(isolate, "host: bad call");
    return false;
  }
  p[0] = static_cast<uint8_t>(info[0].As<v8::Number>()->Value());
  p[1] = static_cast<uint8_t>(argc - 1);
  out->Commit(2);
  for (int i = 1; i < argc; i++) {
    Encoded e = Encode(isolate, Local<v8::Context>(current->context), info[i], out, 0);
    if (e == Encoded::kOk) continue;
    out->Truncate(start);
    if (e == Encoded::kTooLarge) ThrowRange(isolate, "too much output at once");
    if (e == Encoded::kUnknownType) ThrowType(isolate, "host: value of this type cannot be sent");
    return false;
  }
  return true;
}

void Send(const Info& info) { Append(info, &current->owner->out); }

// What is longer is asked in portions, or as a command that is answered later.
constexpr size_t kKeepAnswer = 64u << 10;
constexpr size_t kMaxQuestion = 4u << 20;

}  // namespace

bool AskGo(v8x_context* c, const Outbox& question) {
  c->answer.clear();
  c->answer_is_error = false;
  c->asking.store(true, std::memory_order_relaxed);
  v8xAsk(c->handle, c, const_cast<uint8_t*>(question.data()), question.size());
  c->asking.store(false, std::memory_order_relaxed);
  return !c->answer_is_error;
}

namespace {

// Asks Go and waits: for answers that are needed at once and take microseconds.
void Ask(const Info& info) {
  v8x_context* c = current;
  v8::Isolate* isolate = c->owner->isolate;
  Outbox question(kMaxQuestion);
  question.ChargeTo(c->owner->buffers);
  if (!Append(info, &question)) return;
  AskGo(c, question);
  if (c->answer_is_error) {
    c->answer.push_back(0);
    ThrowType(isolate, reinterpret_cast<const char*>(c->answer.data()));
    return;
  }
  Constants constants{Local<v8::Value>(c->owner->constants[0]), Local<v8::Value>(c->owner->constants[1]),
                      Local<v8::Value>(c->owner->constants[2])};
  Reader reader(isolate, constants, c->answer.data(), c->answer.size(), nullptr, 0);
  Local<v8::Value> v = reader.Value();
  if (c->answer.capacity() > kKeepAnswer) std::vector<uint8_t>().swap(c->answer);
  if (!reader.ok()) return ThrowRange(isolate, "host: no memory for the answer");
  info.Return(v);
}

void EncodeText(const Info& info) {
  v8::Isolate* isolate = current->owner->isolate;
  if (info.Length() < 1 || !info[0]->FullIsString()) return ThrowType(isolate, "host.encode: not a string");
  Local<v8::String> s = info[0].As<v8::String>();
  size_t n = s->Utf8LengthV2(isolate);
  uint8_t* data;
  Local<v8::Value> array = NewBytes(isolate, n, &data);
  if (array.IsEmpty()) return ThrowRange(isolate, "Array buffer allocation failed");
  if (n > 0) {
    s->WriteUtf8V2(isolate, reinterpret_cast<char*>(data), n, v8::String::WriteFlags::kReplaceInvalidUtf8, nullptr);
  }
  info.Return(array);
}

void EncodeInto(const Info& info) {
  v8::Isolate* isolate = current->owner->isolate;
  uint8_t* data = nullptr;
  size_t n = 0;
  if (info.Length() < 2 || !info[0]->FullIsString() || !BytesOf(info[1], &data, &n)) {
    return ThrowType(isolate, "host.encodeInto: not a string and a Uint8Array");
  }
  size_t read = 0, written = 0;
  if (n > 0) {
    written = info[0].As<v8::String>()->WriteUtf8V2(isolate, reinterpret_cast<char*>(data), n,
                                                    v8::String::WriteFlags::kReplaceInvalidUtf8, &read);
  }
  Local<v8::Value> pair[2] = {v8::Number::New(isolate, static_cast<double>(read)),
                              v8::Number::New(isolate, static_cast<double>(written))};
  info.Return(v8::Array::New(isolate, pair, 2));
}

// Whether the bytes are valid UTF-8 (Unicode 15, table 3-7).
bool ValidUtf8(const uint8_t* p, size_t n) {
  for (size_t i = 0; i < n;) {
    uint8_t c = p[i];
    if (c < 0x80) {
      i++;
      continue;
    }
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || n - i <= more) return false;
    uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (p[i + 1] < lo || p[i + 1] > hi) return false;
    for (size_t k = 2; k <= more; k++) {
      if ((p[i + k] & 0xc0) != 0x80) return false;
    }
    i += more + 1;
  }
  return true;
}

void DecodeText(const Info& info) {
  v8::Isolate* isolate = current->owner->isolate;
  uint8_t* data = nullptr;
  size_t n = 0;
  if (info.Length() < 1 || !BytesOf(info[0], &data, &n)) return ThrowType(isolate, "host.decode: not a buffer");
  if (info.Length() > 1 && info[1]->FullIsTrue() && !ValidUtf8(data, n)) {
    return ThrowType(isolate, "The encoded data was not valid for encoding utf-8");
  }
  Local<v8::String> s;
  if (n > INT32_MAX || !v8::String::NewFromUtf8(isolate, n ? reinterpret_cast<char*>(data) : "",
                                                v8::NewStringType::kNormal, static_cast<int>(n)).To(&s)) {
    return ThrowRange(isolate, "Invalid string length");
  }
  info.Return(s);
}

void Random(const Info& info) {
  uint8_t* data = nullptr;
  size_t n = 0;
  if (info.Length() < 1 || !BytesOf(info[0], &data, &n)) {
    return ThrowType(current->owner->isolate, "host.random: not a buffer");
  }
  for (size_t done = 0; done < n;) {
    ssize_t got = getrandom(data + done, n - done, 0);
    if (got < 0) return ThrowRange(current->owner->isolate, "no randomness");
    done += static_cast<size_t>(got);
  }
}

double Millis(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Coarse on purpose: 0.1 ms is too blunt to time the caches of a neighbour.
void Now(const Info& info) {
  double now = std::floor(Millis(CLOCK_MONOTONIC) * 10) / 10;
  info.Return(v8::Number::New(current->owner->isolate, now));
}

void Entry(const Info& info) {
  if (info.Length() < 1 || !info[0]->IsFunction() || current->entry) {
    return ThrowType(current->owner->isolate, "host.entry: once, with a function");
  }
  current->entry = NewGlobal(current->owner->isolate, info[0]);
}

// host.run(feature, host, internal, primordials) runs the files of a feature.
void Run(const Info& info) {
  v8::Isolate* isolate = current->owner->isolate;
  if (info.Length() < 4 || !info[0]->FullIsString()) return ThrowType(isolate, "host.run: bad call");
  Local<v8::Value> parameters[] = {info[1], info[2], info[3]};
  RunFiles(current, Local<v8::Context>(current->context), Utf8(isolate, info[0]), parameters);
}

// host.lazyValues(f): f(name) gives the values of properties of host.lazy.
void LazyValues(const Info& info) {
  if (info.Length() < 1 || !info[0]->IsFunction() || current->lazy) {
    return ThrowType(current->owner->isolate, "host.lazyValues: once, with a function");
  }
  current->lazy = NewGlobal(current->owner->isolate, info[0]);
}

// V8 calls it when such a property is first read, and keeps the value unless something was thrown.
void LazyValue(Local<v8::Name> name, const v8::PropertyCallbackInfo<v8::Value>& info) {
  v8x_context* c = current;
  Local<v8::Value> value, null(c->owner->constants[0]), argv[] = {name};
  Local<v8::Function> f(c->lazy);
  if (f->Call(c->owner->isolate, Local<v8::Context>(c->context), null, 1, argv).To(&value)) info.Return(value);
}

// host.lazy(object, name, enumerable) defines a property that gets its value when it is first read. To scripts it is a
// writable and configurable data property from the start.
void Lazy(const Info& info) {
  v8::Isolate* isolate = current->owner->isolate;
  bool ok;
  if (info.Length() != 3 || !info[1]->FullIsString() || !current->lazy) return ThrowType(isolate, "host.lazy: bad call");
  v8::PropertyAttribute attributes = info[2]->FullIsTrue() ? v8::None : v8::DontEnum;
  info[0].As<v8::Object>()->SetLazyDataProperty(
      Local<v8::Context>(current->context), info[1].As<v8::Name>(), LazyValue, Local<v8::Value>(), attributes,
      v8::SideEffectType::kHasSideEffect, v8::SideEffectType::kHasSideEffect).To(&ok);
}

// [target, handler] of a Proxy, undefined of anything else. Looking at one in any other way runs its traps.
void ProxyDetails(const Info& info) {
  if (info.Length() < 1 || !info[0]->IsProxy()) return;
  Local<v8::Proxy> proxy = info[0].As<v8::Proxy>();
  Local<v8::Value> pair[2] = {proxy->GetTarget(), proxy->GetHandler()};
  info.Return(v8::Array::New(current->owner->isolate, pair, 2));
}

// [state, value] of a promise, undefined of anything else: 0 pending, 1 fulfilled, 2 rejected.
void PromiseDetails(const Info& info) {
  if (info.Length() < 1 || !info[0]->IsPromise()) return;
  v8::Isolate* isolate = current->owner->isolate;
  Local<v8::Promise> promise = info[0].As<v8::Promise>();
  v8::Promise::PromiseState state = promise->State();
  Local<v8::Value> pair[2] = {v8::Number::New(isolate, state), Local<v8::Value>(current->owner->constants[0])};
  if (state != v8::Promise::kPending) pair[1] = promise->Result();
  info.Return(v8::Array::New(isolate, pair, 2));
}

// The frame that acts now: what setFrame was given last, here or where the promise reaction that runs was made.
void Frame(const Info& info) { info.Return(current->owner->isolate->GetContinuationPreservedEmbedderData()); }

void SetFrame(const Info& info) {
  if (info.Length() == 1) current->owner->isolate->SetContinuationPreservedEmbedderData(info[0]);
}

const struct {
  const char* name;
  v8::FunctionCallback callback;
} functions[] = {{"send", Send},     {"ask", Ask},       {"encode", EncodeText}, {"encodeInto", EncodeInto},
                 {"decode", DecodeText}, {"random", Random}, {"now", Now},           {"entry", Entry},
                 {"proxyDetails", ProxyDetails}, {"promiseDetails", PromiseDetails}, {"frame", Frame},
                 {"setFrame", SetFrame}, {"clone", Clone},      {"serialize", Serialize},
                 {"deserialize", Deserialize}, {"run", Run}, {"lazy", Lazy},
                 {"lazyValues", LazyValues}, {"compileWasm", CompileWasm}, {"checkWasm", CheckWasm},
                 {"isWasmModule", IsWasmModule}};

}  // namespace

const intptr_t* ExternalReferences() {
  static const std::vector<intptr_t> list = [] {
    std::vector<intptr_t> l;
    for (const auto& f : functions) l.push_back(reinterpret_cast<intptr_t>(f.callback));
    l.push_back(reinterpret_cast<intptr_t>(LazyValue));
    l.push_back(0);
    return l;
  }();
  return list.data();
}

Local<v8::Object> NewHost(v8::Isolate* isolate, Local<v8::Context> context) {
  Local<v8::Object> host = v8::Object::New(isolate);
  bool ok = true;
  for (const auto& f : functions) {
    Local<v8::Function> fn;
    if (!v8::Function::New(context, f.callback, Local<v8::Value>(), 0, v8::ConstructorBehavior::kThrow,
                           v8::SideEffectType::kHasSideEffect).To(&fn) ||
        !host->Set(context, Ascii(isolate, f.name), fn).To(&ok)) {
      return Local<v8::Object>();
    }
  }
  // Unix time of performance.now() == 0: the monotonic clock's own zero, seen from the wall clock.
  double origin = std::floor(Millis(CLOCK_REALTIME) - Millis(CLOCK_MONOTONIC));
  if (!host->Set(context, Ascii(isolate, "timeOrigin"), v8::Number::New(isolate, origin)).To(&ok)) {
    return Local<v8::Object>();
  }
  return host;
}

}  // namespace v8x
