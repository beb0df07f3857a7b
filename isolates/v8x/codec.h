// The encoding in which values cross between Go and JavaScript, both ways. The Go half is codec.go.
//
//   call    = count:u8 value*            (Go → JS: arguments of the entry function)
//   command = op:u8 count:u8 value*      (JS → Go: host.send; host.ask without a new op for the answer)
//   value   = tag:u8 payload             numbers little-endian
#pragma once
#include "v8x.h"
#include "v8abi.h"

#include <cstring>
#include <vector>

struct Budget;  // allocator.cc

namespace v8x {

enum Tag : uint8_t {
  kNull = 0,
  kTrue = 1,
  kFalse = 2,
  kNumber = 3,  // f64
  kString = 4,  // len:u32 UTF-8
  kBytes = 5,   // len:u32 bytes; a Uint8Array in JavaScript
  kList = 6,    // count:u32 value*
  kBody = 7,    // the call's body as a Uint8Array (Go → JS only)
  kContent = 8, // the call's body as a string if it is ASCII and not long, else as kBody (Go → JS only)
};

// A buffer that keeps its memory between calls and refuses to grow past its limit. What it has beyond kKeep is charged to the budget of its
// isolate's ArrayBuffers.
class Outbox {
 public:
  static constexpr size_t kLimit = 96u << 20;
  static constexpr size_t kKeep = 1u << 20;

  explicit Outbox(size_t limit = kLimit) : limit_(limit) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() { Free(); }
  // Before anything else, unless no owner is to be charged.
  void ChargeTo(Budget* budget) { budget_ = budget; }

  // Room for n more bytes, or null when a limit would be passed.
  uint8_t* Reserve(size_t n) {
    if (n > limit_ || size_ + n > limit_) return nullptr;
    const size_t need = size_ + n;
    if (need > capacity_ && !Grow(need < kKeep ? 2 * need : need + need / 2) && !Grow(need)) return nullptr;
    return bytes_ + size_;
  }
  void Commit(size_t n) { size_ += n; }
  void Truncate(size_t n) { size_ = n; }
  size_t size() const { return size_; }
  const uint8_t* data() const { return bytes_; }
  // Starts over. A buffer that one large answer blew up is given back.
  void Clear() {
    size_ = 0;
    if (capacity_ > kKeep) Free();
  }

 private:
  bool Grow(size_t capacity);
  void Free();

  size_t limit_;
  uint8_t* bytes_ = nullptr;
  size_t capacity_ = 0, size_ = 0;
  Budget* budget_ = nullptr;
  size_t charged_ = 0;
};

enum class Encoded { kOk, kTooLarge, kUnknownType, kThrew };

// Appends v to out. Arrays are read by index; only the runtime's own arrays come here.
Encoded Encode(v8::Isolate*, v8::Local<v8::Context>, v8::Local<v8::Value> v, Outbox* out, int depth);

// The constants of an isolate, kept because V8 offers them only by inline code on its layout.
struct Constants {
  v8::Local<v8::Value> null, yes, no;
};

// Reads encoded values; ok() is false once the input was malformed or V8 refused an allocation.
class Reader {
 public:
  Reader(v8::Isolate* isolate, const Constants& constants, const uint8_t* in, size_t len,
         const uint8_t* body, size_t body_len)
      : isolate_(isolate), constants_(constants), at_(in), end_(in + len), body_(body), body_len_(body_len) {}
  v8::Local<v8::Value> Value(int depth = 0);
  uint8_t Byte() { return Take(1) ? at_[-1] : 0; }
  bool ok() const { return ok_; }

 private:
  bool Take(size_t n) {
    if (static_cast<size_t>(end_ - at_) < n) return ok_ = false;
    at_ += n;
    return true;
  }
  uint32_t Length() {
    uint32_t n = 0;
    if (Take(4)) memcpy(&n, at_ - 4, 4);
    return n;
  }
  v8::Local<v8::Value> Fail() {
    ok_ = false;
    return constants_.null;
  }
  v8::Local<v8::Value> Text(uint32_t n);
  v8::Local<v8::Value> Content();
  v8::Local<v8::Value> Bytes(const uint8_t* data, size_t n);
  v8::Local<v8::Value> List(uint32_t n, int depth);

  v8::Isolate* isolate_;
  const Constants& constants_;
  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* body_;
  size_t body_len_;
  bool ok_ = true;
};

// A fresh Uint8Array of n bytes for the caller to fill, or empty when memory or the limit is out.
v8::Local<v8::Value> NewBytes(v8::Isolate*, size_t n, uint8_t** data);

}  // namespace v8x
