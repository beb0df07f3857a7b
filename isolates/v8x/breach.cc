//go:build breach

// The global __breach: what JavaScript can do in a V8 that it has broken. For tests of what contains it
// (internal/test/breach). The build tag breach compiles this file; without it nothing of it is in a binary.
//
//   __breach.call(number, ...arguments)   any call of the kernel: its result, or -errno. An argument is a number, or an
//                                         ArrayBuffer or view: the address of its bytes
//   __breach.address(bytes)               where they are
//   __breach.read(address, length)        a Uint8Array: shorter where memory ends that can be read
//   __breach.write(address, bytes)        how many bytes it wrote, or -errno
//   __breach.find(bytes, limit)           addresses of these bytes in the process, at most limit
//   __breach.threads(count)               how many threads the system gave it; they have ended when it returns
//
// read, write and find copy through a pipe: the kernel returns EFAULT where a read would end the process. A process that
// gets no pipe asks futex, which reads a word, and copies then: that may end the process when another thread takes the
// page away meanwhile. find needs no /proc: it asks mmap which ranges are free, and mincore which pages are there.
#include "natives.h"
#include "state.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace v8x {

using v8::Local;
using Info = v8::FunctionCallbackInfo<v8::Value>;

namespace {

constexpr uintptr_t kPage = 4096;  // no page is smaller
#ifdef __aarch64__
constexpr uintptr_t kSpace = 1ull << 48;
#else
constexpr uintptr_t kSpace = 1ull << 47;
#endif

v8::Isolate* Here() { return current->owner->isolate; }

// Any number that is an argument or an address.
bool Word(Local<v8::Value> v, long* word) {
  if (!v->IsNumber()) return false;
  double d = v.As<v8::Number>()->Value();
  if (!(std::fabs(d) < 9e18)) return false;
  *word = static_cast<long>(d);
  return true;
}

void Number(const Info& info, double n) { info.Return(v8::Number::New(Here(), n)); }

// Copies memory that may not be there.
class Copier {
 public:
  Copier() { ok_ = pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0; }
  ~Copier() {
    if (!ok_) return;
    close(ends_[0]);
    close(ends_[1]);
  }

  // How many of n bytes it copied from `from` to `to`, or -errno. Fewer than n: ask again for the rest.
  ssize_t Copy(const void* from, void* to, size_t n) {
    if (!ok_) return CopyPages(from, to, n);
    ssize_t in = write(ends_[1], from, n);
    if (in < 0) return -errno;
    for (ssize_t out = 0; out < in;) {
      ssize_t r = ::read(ends_[0], static_cast<uint8_t*>(to) + out, static_cast<size_t>(in - out));
      if (r > 0) {
        out += r;
        continue;
      }
      int failed = errno;
      uint8_t rest[512];
      while (::read(ends_[0], rest, sizeof rest) > 0) {
      }
      return out > 0 ? out : -failed;
    }
    return in;
  }

 private:
  // The kernel reads a word, and compares it with one that is hardly there: it does not wait.
  static bool Readable(const void* p) {
    timespec none = {0, 0};
    uintptr_t word = reinterpret_cast<uintptr_t>(p) & ~uintptr_t{3};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0x5ca1ab1e, &none, nullptr, 0) == 0 || errno != EFAULT;
  }

  // Copies as far as pages can be read. What can only be read must not be written to.
  static ssize_t CopyPages(const void* from, void* to, size_t n) {
    size_t done = 0;
    while (done < n) {
      uintptr_t a = reinterpret_cast<uintptr_t>(from) + done, b = reinterpret_cast<uintptr_t>(to) + done;
      if (!Readable(reinterpret_cast<void*>(a)) || !Readable(reinterpret_cast<void*>(b))) break;
      size_t part = std::min({n - done, kPage - a % kPage, kPage - b % kPage});
      memcpy(reinterpret_cast<void*>(b), reinterpret_cast<void*>(a), part);
      done += part;
    }
    return done > 0 ? static_cast<ssize_t>(done) : -EFAULT;
  }

  int ends_[2];
  bool ok_;
};

void Call(const Info& info) {
  long a[7] = {};
  for (int i = 0; i < info.Length() && i < 7; i++) {
    uint8_t* bytes;
    size_t n;
    if (Word(info[i], &a[i])) continue;
    if (i == 0 || !BytesOf(info[i], &bytes, &n)) return ThrowType(Here(), "__breach.call: numbers or bytes");
    a[i] = reinterpret_cast<long>(bytes);
  }
  long r = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
  Number(info, static_cast<double>(r == -1 ? -errno : r));
}

void Address(const Info& info) {
  uint8_t* bytes;
  size_t n;
  if (info.Length() < 1 || !BytesOf(info[0], &bytes, &n)) return ThrowType(Here(), "__breach.address: bytes");
  Number(info, static_cast<double>(reinterpret_cast<uintptr_t>(bytes)));
}

void Read(const Info& info) {
  long at, n;
  if (info.Length() < 2 || !Word(info[0], &at) || !Word(info[1], &n) || n < 0 || n > 1 << 24) {
    return ThrowType(Here(), "__breach.read: an address and a length of at most 16 MiB");
  }
  Copier copier;
  std::vector<uint8_t> got(static_cast<size_t>(n));
  size_t done = 0;
  while (done < got.size()) {
    ssize_t r = copier.Copy(reinterpret_cast<uint8_t*>(at) + done, got.data() + done, got.size() - done);
    if (r <= 0) break;
    done += static_cast<size_t>(r);
  }
  uint8_t* data;
  Local<v8::Value> array = NewBytes(Here(), done, &data);
  if (array.IsEmpty()) return ThrowType(Here(), "__breach.read: no memory");
  if (done > 0) memcpy(data, got.data(), done);
  info.Return(array);
}

void Write(const Info& info) {
  long at;
  uint8_t* bytes;
  size_t n;
  if (info.Length() < 2 || !Word(info[0], &at) || !BytesOf(info[1], &bytes, &n)) {
    return ThrowType(Here(), "__breach.write: an address and bytes");
  }
  Copier copier;
  size_t done = 0;
  while (done < n) {
    ssize_t r = copier.Copy(bytes + done, reinterpret_cast<uint8_t*>(at) + done, n - done);
    if (r <= 0 && done == 0) return Number(info, static_cast<double>(r));
    if (r <= 0) break;
    done += static_cast<size_t>(r);
  }
  Number(info, static_cast<double>(done));
}

// Finds bytes in all memory of the process that is resident.
class Search {
 public:
  Search(const uint8_t* what, size_t n, size_t limit) : what_(what), n_(n), limit_(limit), chunk_(64u << 10) {}
  const std::vector<uintptr_t>& found() const { return found_; }

  // Looks at a range: splits it until it is free, or small.
  void Walk(uintptr_t lo, uintptr_t size) {
    if (found_.size() >= limit_ || Free(lo, size)) return;
    if (size <= kLeaf) {
      pages_.resize(size / kPage);
      if (mincore(reinterpret_cast<void*>(lo), size, pages_.data()) == 0) return Runs(lo);
      if (size <= kPage) return;  // there is nothing
    }
    Walk(lo, size / 2);
    Walk(lo + size / 2, size / 2);
  }

 private:
  static constexpr uintptr_t kLeaf = 64u << 20;

  // Whether nothing is mapped there.
  static bool Free(uintptr_t lo, uintptr_t size) {
    void* p = mmap(reinterpret_cast<void*>(lo), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) return false;
    munmap(p, size);
    return p == reinterpret_cast<void*>(lo);  // old kernels do not know MAP_FIXED_NOREPLACE
  }

  // Searches the resident pages of a range, of which pages_ tells.
  void Runs(uintptr_t lo) {
    for (size_t i = 0; i < pages_.size(); i++) {
      size_t first = i;
      while (i < pages_.size() && pages_[i] & 1) i++;
      if (i > first) Run(lo + first * kPage, lo + i * kPage);
    }
  }

  void Run(uintptr_t pos, uintptr_t end) {
    while (pos < end && found_.size() < limit_) {
      size_t size = end - pos < chunk_.size() ? end - pos : chunk_.size();
      ssize_t r = copier_.Copy(reinterpret_cast<void*>(pos), chunk_.data(), size);
      if (r <= 0) {  // the page cannot be read
        pos = (pos | (kPage - 1)) + 1;
        continue;
      }
      size_t got = static_cast<size_t>(r);
      Match(pos, got);
      pos += got > n_ && pos + got < end ? got - (n_ - 1) : got;
    }
  }

  void Match(uintptr_t pos, size_t got) {
    uintptr_t own = reinterpret_cast<uintptr_t>(chunk_.data());
    const uint8_t* from = chunk_.data();
    const uint8_t* end = from + got;
    while (found_.size() < limit_) {
      from = static_cast<const uint8_t*>(memmem(from, static_cast<size_t>(end - from), what_, n_));
      if (!from) return;
      uintptr_t at = pos + static_cast<uintptr_t>(from - chunk_.data());
      if (at < own || at >= own + chunk_.size()) found_.push_back(at);
      from++;
    }
  }

  const uint8_t* what_;
  size_t n_, limit_;
  std::vector<uint8_t> chunk_;
  std::vector<unsigned char> pages_;
  std::vector<uintptr_t> found_;
  Copier copier_;
};

void Find(const Info& info) {
  uint8_t* bytes;
  size_t n;
  long limit;
  if (info.Length() < 2 || !BytesOf(info[0], &bytes, &n) || n == 0 || n > kPage || !Word(info[1], &limit) ||
      limit < 0 || limit > 1 << 16) {
    return ThrowType(Here(), "__breach.find: 1 to 4096 bytes, and a limit of at most 65536");
  }
  Search search(bytes, n, static_cast<size_t>(limit));
  search.Walk(0, kSpace);
  std::vector<Local<v8::Value>> list;
  for (uintptr_t at : search.found()) list.push_back(v8::Number::New(Here(), static_cast<double>(at)));
  info.Return(v8::Array::New(Here(), list.data(), list.size()));
}

void* Wait(void* gate) {
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(gate));
  pthread_mutex_unlock(static_cast<pthread_mutex_t*>(gate));
  return nullptr;
}

void Threads(const Info& info) {
  long count;
  if (info.Length() < 1 || !Word(info[0], &count) || count < 0 || count > 1 << 16) {
    return ThrowType(Here(), "__breach.threads: a count of at most 65536");
  }
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&gate);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64u << 10);
  // Go's handlers of signals belong to threads of Go.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::vector<pthread_t> threads;
  pthread_t one;
  while (threads.size() < static_cast<size_t>(count) && pthread_create(&one, &small, Wait, &gate) == 0) {
    threads.push_back(one);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_mutex_unlock(&gate);
  for (pthread_t t : threads) pthread_join(t, nullptr);
  pthread_attr_destroy(&small);
  Number(info, static_cast<double>(threads.size()));
}

const struct {
  const char* name;
  v8::FunctionCallback callback;
} functions[] = {{"call", Call},   {"address", Address}, {"read", Read},
                 {"write", Write}, {"find", Find},       {"threads", Threads}};

}  // namespace

bool AddBreach(v8x_context* c) {
  v8::Isolate* isolate = c->owner->isolate;
  Local<v8::Context> context(c->context);
  context->Enter();
  Local<v8::Object> breach = v8::Object::New(isolate);
  Local<v8::String> name;
  bool ok = true;
  for (const auto& f : functions) {
    Local<v8::Function> fn;
    ok = ok && NewText(isolate, f.name, strlen(f.name), &name) &&
         v8::Function::New(context, f.callback, Local<v8::Value>(), 0, v8::ConstructorBehavior::kThrow,
                           v8::SideEffectType::kHasSideEffect).To(&fn) &&
         breach->Set(context, name, fn).To(&ok);
  }
  ok = ok && NewText(isolate, "__breach", 8, &name) && context->Global()->Set(context, name, breach).To(&ok);
  context->Exit();
  return ok;
}

}  // namespace v8x
