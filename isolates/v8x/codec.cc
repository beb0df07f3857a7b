#include "codec.h"

#include "state.h"

#include <cstdlib>

namespace v8x {

using v8::Local;

bool Outbox::Grow(size_t capacity) {
  const size_t charge = capacity > kKeep ? capacity : 0;
  if (budget_ && charge > charged_ && !ChargeBudget(budget_, charge - charged_)) return false;
  uint8_t* bytes = static_cast<uint8_t*>(realloc(bytes_, capacity));
  if (!bytes) {
    if (budget_ && charge > charged_) UnchargeBudget(budget_, charge - charged_);
    return false;
  }
  bytes_ = bytes;
  capacity_ = capacity;
  if (budget_ && charge > charged_) charged_ = charge;
  return true;
}

void Outbox::Free() {
  free(bytes_);
  bytes_ = nullptr;
  capacity_ = size_ = 0;
  if (charged_ > 0) UnchargeBudget(budget_, charged_);
  charged_ = 0;
}

namespace {

bool PutTag(Outbox* out, Tag tag) {
  uint8_t* p = out->Reserve(1);
  if (!p) return false;
  *p = tag;
  out->Commit(1);
  return true;
}

bool IsAscii(const uint8_t* p, size_t n) {
  uint64_t all = 0;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    all |= word;
  }
  while (n-- > 0) all |= *p++;
  return (all & 0x8080808080808080u) == 0;
}

Encoded PutNumber(Outbox* out, double d) {
  uint8_t* p = out->Reserve(9);
  if (!p) return Encoded::kTooLarge;
  *p = kNumber;
  memcpy(p + 1, &d, 8);
  out->Commit(9);
  return Encoded::kOk;
}

Encoded PutString(v8::Isolate* isolate, Local<v8::String> s, Outbox* out) {
  size_t most = static_cast<size_t>(s->Length()) * 3;  // a UTF-16 unit is at most 3 bytes of UTF-8
  if (most > Outbox::kLimit / 2) most = s->Utf8LengthV2(isolate);
  uint8_t* p = out->Reserve(5 + most);
  if (!p) return Encoded::kTooLarge;
  uint32_t n = static_cast<uint32_t>(s->WriteUtf8V2(isolate, reinterpret_cast<char*>(p + 5), most,
                                                    v8::String::WriteFlags::kReplaceInvalidUtf8, nullptr));
  *p = kString;
  memcpy(p + 1, &n, 4);
  out->Commit(5 + n);
  return Encoded::kOk;
}

uint8_t* PutBytes(Outbox* out, size_t n) {
  uint8_t* p = out->Reserve(5 + n);
  if (!p) return nullptr;
  *p = kBytes;
  uint32_t len = static_cast<uint32_t>(n);
  memcpy(p + 1, &len, 4);
  out->Commit(5 + n);
  return p + 5;
}

Encoded PutArray(v8::Isolate* isolate, Local<v8::Context> context, Local<v8::Array> array, Outbox* out, int depth) {
  uint32_t n = array->Length();
  uint8_t* p = out->Reserve(5);
  if (!p) return Encoded::kTooLarge;
  *p = kList;
  memcpy(p + 1, &n, 4);
  out->Commit(5);
  for (uint32_t i = 0; i < n; i++) {
    Local<v8::Value> item;
    if (!array->Get(context, i).To(&item)) return Encoded::kThrew;
    Encoded e = Encode(isolate, context, item, out, depth + 1);
    if (e != Encoded::kOk) return e;
  }
  return Encoded::kOk;
}

}  // namespace

Encoded Encode(v8::Isolate* isolate, Local<v8::Context> context, Local<v8::Value> v, Outbox* out, int depth) {
  if (v->FullIsString()) return PutString(isolate, v.As<v8::String>(), out);
  if (v->IsNumber()) return PutNumber(out, v.As<v8::Number>()->Value());
  if (v->FullIsUndefined() || v->FullIsNull()) return PutTag(out, kNull) ? Encoded::kOk : Encoded::kTooLarge;
  if (v->FullIsTrue()) return PutTag(out, kTrue) ? Encoded::kOk : Encoded::kTooLarge;
  if (v->FullIsFalse()) return PutTag(out, kFalse) ? Encoded::kOk : Encoded::kTooLarge;
  if (v->IsArrayBufferView()) {
    Local<v8::ArrayBufferView> view = v.As<v8::ArrayBufferView>();
    size_t n = view->ByteLength();
    uint8_t* p = PutBytes(out, n);
    if (!p) return Encoded::kTooLarge;
    view->CopyContents(p, n);
    return Encoded::kOk;
  }
  if (v->IsArrayBuffer()) {
    Local<v8::ArrayBuffer> buffer = v.As<v8::ArrayBuffer>();
    size_t n = buffer->ByteLength();
    uint8_t* p = PutBytes(out, n);
    if (!p) return Encoded::kTooLarge;
    if (n > 0) memcpy(p, buffer->Data(), n);
    return Encoded::kOk;
  }
  if (v->IsArray() && depth < 4) return PutArray(isolate, context, v.As<v8::Array>(), out, depth);
  return Encoded::kUnknownType;
}

Local<v8::Value> Reader::Value(int depth) {
  switch (Byte()) {
    case kNull: return constants_.null;
    case kTrue: return constants_.yes;
    case kFalse: return constants_.no;
    case kNumber: {
      if (!Take(8)) return Fail();
      double d;
      memcpy(&d, at_ - 8, 8);
      return v8::Number::New(isolate_, d);
    }
    case kString: return Text(Length());
    case kBytes: {
      uint32_t n = Length();
      if (!Take(n)) return Fail();
      return Bytes(at_ - n, n);
    }
    case kList: return List(Length(), depth);
    case kBody: return Bytes(body_, body_len_);
    case kContent: return Content();
  }
  return Fail();
}

Local<v8::Value> Reader::Text(uint32_t n) {
  if (!Take(n)) return Fail();
  Local<v8::String> s;
  const uint8_t* p = at_ - n;
  const int length = static_cast<int>(n);
  const bool made = IsAscii(p, n)
      ? v8::String::NewFromOneByte(isolate_, p, v8::NewStringType::kNormal, length).To(&s)
      : v8::String::NewFromUtf8(isolate_, reinterpret_cast<const char*>(p), v8::NewStringType::kNormal, length).To(&s);
  return made ? Local<v8::Value>(s) : Fail();
}

// A string is half the work of an ArrayBuffer to make and to free, and text() and json() need one. The bytes
// of an ASCII string are the string's, so nothing is lost where they are wanted.
Local<v8::Value> Reader::Content() {
  constexpr size_t kMost = 1u << 20;  // a heap has less room than its ArrayBuffers
  if (body_len_ > kMost || !IsAscii(body_, body_len_)) return Bytes(body_, body_len_);
  Local<v8::String> s;
  if (!v8::String::NewFromOneByte(isolate_, body_, v8::NewStringType::kNormal, static_cast<int>(body_len_)).To(&s)) return Fail();
  return s;
}

Local<v8::Value> Reader::Bytes(const uint8_t* data, size_t n) {
  uint8_t* p;
  Local<v8::Value> array = NewBytes(isolate_, n, &p);
  if (array.IsEmpty()) return Fail();
  if (n > 0) memcpy(p, data, n);
  return array;
}

Local<v8::Value> Reader::List(uint32_t n, int depth) {
  if (depth >= 4 || n > static_cast<size_t>(end_ - at_)) return Fail();
  std::vector<Local<v8::Value>> items(n);
  for (auto& item : items) item = Value(depth + 1);
  return v8::Array::New(isolate_, items.data(), n);
}

Local<v8::Value> NewBytes(v8::Isolate* isolate, size_t n, uint8_t** data) {
  Local<v8::ArrayBuffer> buffer;
  if (!v8::ArrayBuffer::MaybeNew(isolate, n, v8::BackingStoreInitializationMode::kUninitialized).To(&buffer)) {
    return Local<v8::Value>();
  }
  *data = static_cast<uint8_t*>(buffer->Data());
  return v8::Uint8Array::New(buffer, 0, n);
}

}  // namespace v8x
