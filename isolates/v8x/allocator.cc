// A limit on ArrayBuffers per isolate. V8 takes their memory from one allocator that v8go shares
// between all isolates (8 GB for the process, by notes); ours stands in front of it and charges the
// isolate that runs on the thread.
#include "state.h"

#include <algorithm>
#include <map>
#include <mutex>

// v8go's allocator (isolate.cc there), a global of that name.
extern v8::ArrayBuffer::Allocator* default_allocator;

// Bytes an isolate has in ArrayBuffers. Shared by the isolate and its buffers, which the
// garbage collector frees on threads of its own, even after the isolate is gone.
struct Budget {
  std::atomic<size_t> used{0};
  std::atomic<size_t> owners{1};
  std::atomic<size_t> limit{0};
  std::atomic<size_t> reserved{0};  // bytes of address space
};

namespace v8x {

namespace {

// Every buffer is preceded by its budget.
constexpr size_t kHeader = 16;

// V8 has small typed arrays in its heap, and makes their buffers when they are asked for. It takes a refusal then for the end of the process
// (JSTypedArray::GetBuffer), so these are not refused. All together may pass the limit by kSmallSlack, behind which the run is over.
constexpr size_t kSmall = 64;  // V8_TYPED_ARRAY_MAX_SIZE_IN_HEAP
constexpr size_t kSmallSlack = 1 << 20;

// Charges a small buffer to the isolate that runs on the thread, for which its budget has no room.
void ChargeSmall(Budget* budget, size_t length) {
  size_t used = budget->used.fetch_add(length, std::memory_order_relaxed) + length;
  if (used <= budget->limit + kSmallSlack) return;
  EndAtLimit(current->owner);
}

// The budget of the isolate that runs on the thread, with length charged to it; ok is false when that is too much.
Budget* ChargeCurrent(size_t length, bool* ok) {
  Budget* budget = current ? current->owner->buffers : nullptr;
  *ok = !budget || ChargeBudget(budget, length);
  return budget;
}

// Address space that is reserved for memories of WebAssembly and resizable buffers: by one isolate, and by all. V8 has
// 1 TB for it in a process. The last quarter is for small ones: a memory that gets no room to grow into is reserved
// again with as much as it has at first, and moves when it grows.
constexpr size_t kMostReserved = size_t{4} << 30, kMostReservedOfAll = size_t{512} << 30, kSmallReservation = 64 << 20;

// Memories of WebAssembly and resizable buffers do not come from Allocate: V8 reserves the most that one may have from a
// page allocator of its own, and commits of it what is used. What is committed is charged. V8 commits the first pages
// by this allocator, and the others by that of the platform: blocks.cc sees both, and calls Commit.
class LimitingPages final : public v8::PageAllocator {
 public:
  explicit LimitingPages(v8::PageAllocator* real) : real_(real) {}

  void* AllocatePages(void* address, size_t length, size_t alignment, Permission permission) override {
    Budget* budget = current ? current->owner->buffers : nullptr;
    if (!budget) return real_->AllocatePages(address, length, alignment, permission);
    if (!Reserve(budget, length)) return nullptr;
    void* start = real_->AllocatePages(address, length, alignment, permission);
    if (!start) {
      Unreserve(budget, length);
      return nullptr;
    }
    budget->owners.fetch_add(1, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      reserved_[static_cast<char*>(start)] = {budget, length, 0};
    }
    if (permission == kNoAccess || Commit(static_cast<char*>(start), length, true)) return start;
    FreePages(start, length);
    return nullptr;
  }

  bool FreePages(void* address, size_t length) override {
    Reserved r;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto it = reserved_.find(static_cast<char*>(address));
      if (it != reserved_.end()) {
        r = it->second;
        reserved_.erase(it);
      }
    }
    bool freed = real_->FreePages(address, length);
    if (r.budget) {
      UnchargeBudget(r.budget, r.committed);
      Unreserve(r.budget, r.length);
      DropBudget(r.budget);
    }
    return freed;
  }

  // The range gets access, or loses it. False: it must not get it.
  bool Commit(char* start, size_t size, bool access) {
    if (of_all_.load(std::memory_order_relaxed) == 0) return true;
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = reserved_.upper_bound(start);
    if (it == reserved_.begin()) return true;
    --it;
    Reserved& r = it->second;
    size_t from = static_cast<size_t>(start - it->first);
    if (from >= r.length) return true;
    size_t to = access ? std::max(r.committed, from + size) : std::min(r.committed, from);
    if (to > r.committed && !ChargeBudget(r.budget, to - r.committed)) return false;
    if (to < r.committed) UnchargeBudget(r.budget, r.committed - to);
    r.committed = to;
    return true;
  }

  size_t AllocatePageSize() override { return real_->AllocatePageSize(); }
  size_t CommitPageSize() override { return real_->CommitPageSize(); }
  void SetRandomMmapSeed(int64_t seed) override { real_->SetRandomMmapSeed(seed); }
  void* GetRandomMmapAddr() override { return real_->GetRandomMmapAddr(); }
  bool ReleasePages(void* a, size_t n, size_t left) override { return real_->ReleasePages(a, n, left); }
  bool SetPermissions(void* a, size_t n, Permission p) override { return real_->SetPermissions(a, n, p); }
  bool RecommitPages(void* a, size_t n, Permission p) override { return real_->RecommitPages(a, n, p); }
  bool DiscardSystemPages(void* a, size_t n) override { return real_->DiscardSystemPages(a, n); }
  bool DecommitPages(void* a, size_t n) override { return real_->DecommitPages(a, n); }
  bool SealPages(void* a, size_t n) override { return real_->SealPages(a, n); }
  bool ReserveForSharedMemoryMapping(void*, size_t) override { return false; }
  std::unique_ptr<SharedMemory> AllocateSharedPages(size_t, const void*) override { return {}; }
  bool CanAllocateSharedPages() override { return false; }

 private:
  struct Reserved {
    Budget* budget = nullptr;
    size_t length = 0, committed = 0;
  };

  bool Reserve(Budget* budget, size_t length) {
    if (length > kMostReserved) return false;
    size_t all = of_all_.fetch_add(length) + length, one = budget->reserved.fetch_add(length) + length;
    size_t spare = length > kSmallReservation ? 4 : SIZE_MAX;
    if (one <= kMostReserved - kMostReserved / spare && all <= kMostReservedOfAll - kMostReservedOfAll / spare) return true;
    Unreserve(budget, length);
    return false;
  }

  void Unreserve(Budget* budget, size_t length) {
    of_all_ -= length;
    budget->reserved -= length;
  }

  v8::PageAllocator* real_;
  std::mutex mutex_;
  std::map<char*, Reserved> reserved_;  // by first address
  std::atomic<size_t> of_all_{0};
};

std::atomic<LimitingPages*> pages{nullptr};

class LimitingAllocator final : public v8::ArrayBuffer::Allocator {
 public:
  explicit LimitingAllocator(v8::ArrayBuffer::Allocator* real) : real_(real) {}

  void* Allocate(size_t length) override { return Charge(length, true); }
  void* AllocateUninitialized(size_t length) override { return Charge(length, false); }

  void Free(void* data, size_t length) override {
    if (!data) return;
    uint8_t* start = static_cast<uint8_t*>(data) - kHeader;
    Budget* budget;
    memcpy(&budget, start, sizeof budget);
    real_->Free(start, length + kHeader);
    if (!budget) return;
    budget->used.fetch_sub(length, std::memory_order_relaxed);
    DropBudget(budget);
  }

  size_t MaxAllocationSize() const override { return real_->MaxAllocationSize() - kHeader; }
  v8::PageAllocator* GetPageAllocator() override { return real_->GetPageAllocator(); }

 private:
  void* Charge(size_t length, bool zero) {
    bool ok;
    Budget* budget = ChargeCurrent(length, &ok);
    if (!ok && length > kSmall) return nullptr;
    if (!ok) ChargeSmall(budget, length);
    void* start = zero ? real_->Allocate(length + kHeader) : real_->AllocateUninitialized(length + kHeader);
    if (!start) {
      if (budget) budget->used.fetch_sub(length, std::memory_order_relaxed);
      return nullptr;
    }
    if (budget) budget->owners.fetch_add(1, std::memory_order_relaxed);
    memcpy(start, &budget, sizeof budget);
    return static_cast<uint8_t*>(start) + kHeader;
  }

  v8::ArrayBuffer::Allocator* real_;
};

}  // namespace

Budget* NewBudget(size_t limit) {
  Budget* b = new Budget;
  live.budgets.fetch_add(1, std::memory_order_relaxed);
  b->limit = limit;
  return b;
}

void DropBudget(Budget* b) {
  if (!b || b->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  live.budgets.fetch_sub(1, std::memory_order_relaxed);
  delete b;
}

bool ChargeBudget(Budget* b, size_t bytes) {
  size_t before = b->used.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= b->limit) return true;
  b->used.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void UnchargeBudget(Budget* b, size_t bytes) { b->used.fetch_sub(bytes, std::memory_order_relaxed); }

void LimitBudget(Budget* b, size_t limit) { b->limit = limit; }

size_t BudgetUsed(const Budget* b) { return b->used.load(std::memory_order_relaxed); }

size_t BudgetLimit(const Budget* b) { return b->limit.load(std::memory_order_relaxed); }

bool Commit(char* start, size_t size, bool access) {
  LimitingPages* all = pages.load(std::memory_order_acquire);
  return !all || all->Commit(start, size, access);
}

void InstallAllocator() { default_allocator = new LimitingAllocator(default_allocator); }

}  // namespace v8x

// V8 asks this method of its only isolate group for the pages of memories and resizable buffers. The linker sends the calls
// here (--wrap).
v8::PageAllocator* RealBackingStorePages(void* group) __asm__("__real__ZN2v88internal12IsolateGroup28GetBackingStorePageAllocatorEv");
v8::PageAllocator* LimitedBackingStorePages(void* group) __asm__("__wrap__ZN2v88internal12IsolateGroup28GetBackingStorePageAllocatorEv");

v8::PageAllocator* LimitedBackingStorePages(void* group) {
  static v8x::LimitingPages* all = [group] {
    auto* made = new v8x::LimitingPages(RealBackingStorePages(group));
    v8x::pages.store(made, std::memory_order_release);
    return made;
  }();
  return all;
}
