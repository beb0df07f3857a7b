// Memory of closed isolates is used again (docs/development/adr/0043). When V8 closes an isolate, it gives each page of its heap and each
// segment of its tables back to the system, and asks for as much for the next one. Here such a block is cleared and stays mapped until V8
// allocates it again. V8 prefers low addresses, so it mostly allocates the same blocks. For V8 nothing changes: a block that it allocates is
// zero and can be written. What an isolate frees while it lives goes back to the system.
//
// The linker sends V8's calls here (--wrap). The names are those of its src/base/platform.
#include "v8x.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>

namespace v8::base {
enum class Permission { kNoAccess, kRead, kReadWrite };  // OS::MemoryPermission, which has more
struct Reservation {                                     // AddressSpaceReservation
  char* base;
  size_t size;
};
}  // namespace v8::base

using v8::base::Permission;
using v8::base::Reservation;

#define V8(name) __asm__("__real__ZN2v84base" name)
#define OURS(name) __asm__("__wrap__ZN2v84base" name)

#define SET "2OS14SetPermissionsEPvmNS1_16MemoryPermissionE"
bool V8SetPermissions(char* start, size_t size, Permission) V8(SET);
bool SetPermissions(char* start, size_t size, Permission) OURS(SET);

#define DECOMMIT "2OS13DecommitPagesEPvm"
bool V8Decommit(char* start, size_t size) V8(DECOMMIT);
bool Decommit(char* start, size_t size) OURS(DECOMMIT);

#define FREE "2OS4FreeEPvm"
void V8Free(char* start, size_t size) V8(FREE);
void Free(char* start, size_t size) OURS(FREE);

#define RELEASE "2OS7ReleaseEPvm"
void V8Release(char* start, size_t size) V8(RELEASE);
void Release(char* start, size_t size) OURS(RELEASE);

// Reservations are ranges of addresses in which V8 allocates. Their methods of these names call those of OS.
bool SetPermissionsIn(Reservation*, char* start, size_t size, Permission)
    OURS("23AddressSpaceReservation14SetPermissionsEPvmNS0_2OS16MemoryPermissionE");
bool DecommitIn(Reservation*, char* start, size_t size) OURS("23AddressSpaceReservation13DecommitPagesEPvm");

#define ALLOCATE "23AddressSpaceReservation8AllocateEPvmNS0_2OS16MemoryPermissionE"
bool V8AllocateIn(Reservation*, char* start, size_t size, Permission) V8(ALLOCATE);
bool AllocateIn(Reservation*, char* start, size_t size, Permission) OURS(ALLOCATE);

#define FREE_IN "23AddressSpaceReservation4FreeEPvm"
bool V8FreeIn(Reservation*, char* start, size_t size) V8(FREE_IN);
bool FreeIn(Reservation*, char* start, size_t size) OURS(FREE_IN);

#define RESERVE "2OS29CreateAddressSpaceReservationEPvmmNS1_16MemoryPermissionE"
std::optional<Reservation> V8Reserve(void* hint, size_t size, size_t alignment, Permission most) V8(RESERVE);
std::optional<Reservation> Reserve(void* hint, size_t size, size_t alignment, Permission most) OURS(RESERVE);

#define UNRESERVE "2OS27FreeAddressSpaceReservationENS0_23AddressSpaceReservationE"
void V8Unreserve(Reservation) V8(UNRESERVE);
void Unreserve(Reservation) OURS(UNRESERVE);

#define DISPOSE "_ZN2v87Isolate7DisposeEv"
void V8Dispose(void* isolate) __asm__("__real_" DISPOSE);
void Dispose(void* isolate) __asm__("__wrap_" DISPOSE);

namespace v8x {
// Memories of WebAssembly and resizable buffers are charged for what they commit: allocator.cc.
bool Commit(char* start, size_t size, bool access);
}  // namespace v8x

namespace {

thread_local bool closing = false;  // the thread closes an isolate

constexpr size_t kPage = 256 << 10;    // of a heap
constexpr size_t kSegment = 64 << 10;  // of a table of pointers: an isolate has five tables, each in a reservation of its own

// Any isolate may get a page that is kept, so further ones go back to the system. A segment may be in the reservation of an isolate that
// does not need it: for further ones, what was kept longest goes.
constexpr size_t kMostKept = V8X_MOST_KEPT;
constexpr size_t kMostUnused = 64 << 10;  // bytes of memory at the end of a page that its last isolate did not use
constexpr size_t kMostReservations = 16;  // of each size

// Pages of the system are 4, 16 or 64 KB.
constexpr size_t kLeastOfSystem = 4 << 10;

const size_t system_page = getpagesize();

bool IsZero(const char* p) { return p[0] == 0 && memcmp(p, p + 1, system_page - 1) == 0; }

// Makes a block zero. It was zero when V8 got it, so what is zero now was not used.
void Clear(char* block, size_t size) {
  unsigned char resident[kPage / kLeastOfSystem];
  if (size == kSegment || mincore(block, size, resident)) {  // V8 uses all of a segment
    memset(block, 0, size);
    return;
  }
  size_t count = size / system_page, used = count, unused = 0;
  for (; used > 0; used--) {
    if (!(resident[used - 1] & 1)) continue;
    if (!IsZero(block + (used - 1) * system_page)) break;
    unused += system_page;
  }
  if (unused >= kMostUnused) {
    madvise(block + used * system_page, (count - used) * system_page, MADV_DONTNEED);
    count = used;
  }
  for (size_t i = 0, end; i < count; i = end) {
    end = i + 1;
    while (end < count && (resident[end] & 1) == (resident[i] & 1)) end++;
    char* start = block + i * system_page;
    if (!(resident[i] & 1)) {
      madvise(start, (end - i) * system_page, MADV_DONTNEED);  // it has no memory yet, or is swapped out
    } else if (i < used) {
      memset(start, 0, (std::min(end, used) - i) * system_page);
    }
  }
}

// The blocks that V8 has, and those that are kept for it. V8 holds a lock of its own while it allocates or frees a block. So no block is in
// two calls at once.
class Blocks {
 public:
  // A block that is kept becomes V8's.
  bool Take(char* start) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = blocks_.find(start);
    if (it == blocks_.end() || !it->second.kept) return false;
    NoLongerKept(it->second);
    reused_++;
    return true;
  }

  // V8 has got a block from the system.
  void Add(char* start, size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_[start] = {size, size, false, {}};
  }

  // V8 frees the end of a block that it has. Returns false if it has no such block.
  bool Shorten(char* start, char* end, size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = blocks_.find(start);
    if (it == blocks_.end() || it->second.kept || end + size != start + it->second.length) return false;
    it->second.length = end - start;
    return true;
  }

  // V8 frees a block that it has, and it is kept or goes back to the system. Returns false if V8 has no such block.
  bool Keep(char* start, size_t length) {
    size_t size;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto it = blocks_.find(start);
      if (it == blocks_.end() || it->second.kept) return false;
      size = it->second.size;
      if (length != size && length != it->second.length) return false;
      if (!closing || (size == kPage && bytes_ + size > kMostKept)) {
        GiveBack(it);
        return true;
      }
    }
    Clear(start, size);
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_[start] = {size, size, true, kept_.insert(kept_.end(), start)};
    bytes_ += size;
    while (bytes_ > kMostKept) GiveBack(blocks_.find(kept_.front()));
    return true;
  }

  // Something else happens to a range. What is kept of it goes back to the system.
  void Forget(char* start, size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = blocks_.lower_bound(start - kPage + 1); it != blocks_.end() && it->first < start + size;) {
      if (it->first + it->second.size <= start) {
        it++;
      } else {
        it = it->second.kept ? GiveBack(it) : blocks_.erase(it);
      }
    }
  }

  void GiveAllBack() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!kept_.empty()) GiveBack(blocks_.find(kept_.front()));
  }

  void Count(size_t* kept, size_t* reused) {
    std::lock_guard<std::mutex> lock(mutex_);
    *kept = bytes_;
    *reused = reused_;
  }

 private:
  struct Block {
    size_t size, length;               // length: without the end that V8 has freed
    bool kept;                         // otherwise V8 has it
    std::list<char*>::iterator place;  // in kept_
  };
  using Map = std::map<char*, Block>;

  void NoLongerKept(Block& b) {
    b.kept = false;
    kept_.erase(b.place);
    bytes_ -= b.size;
  }

  Map::iterator GiveBack(Map::iterator it) {
    madvise(it->first, it->second.size, MADV_DONTNEED);
    mprotect(it->first, it->second.size, PROT_NONE);
    if (it->second.kept) NoLongerKept(it->second);
    return blocks_.erase(it);
  }

  std::mutex mutex_;
  Map blocks_;
  std::list<char*> kept_;  // longest first
  size_t bytes_ = 0, reused_ = 0;
};

// The reservations of tables that V8 has, and those that are kept for it with the segments that are kept in them.
class Reservations {
 public:
  // One that is kept becomes V8's.
  std::optional<Reservation> Take(size_t size, size_t alignment) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& list = kept_[size];
    if (list.empty() || reinterpret_cast<uintptr_t>(list.front()) % alignment) return {};
    Reservation r{list.front(), size};
    list.pop_front();
    segments_[r.base] = 0;
    return r;
  }

  // V8 has got one from the system.
  void Add(Reservation r) {
    std::lock_guard<std::mutex> lock(mutex_);
    segments_[r.base] = 0;
  }

  // V8 allocates n segments in one, or frees -n.
  void Allocate(Reservation r, int n) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = segments_.find(r.base);
    if (it != segments_.end()) it->second += n;
  }

  // V8 gives one back that it has. Returns false if it cannot be used again.
  bool Keep(Reservation r) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = segments_.find(r.base);
    if (it == segments_.end()) return false;
    bool empty = it->second == 0;
    segments_.erase(it);
    auto& list = kept_[r.size];
    if (!empty || list.size() >= kMostReservations) return false;
    list.push_back(r.base);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<char*, int> segments_;  // that V8 has, by the base of their reservation
  std::map<size_t, std::list<char*>> kept_;
};

// V8's threads may still run when the process ends.
Blocks& blocks = *new Blocks;
Reservations& reservations = *new Reservations;

}  // namespace

std::optional<Reservation> Reserve(void* hint, size_t size, size_t alignment, Permission most) {
  if (most != Permission::kReadWrite) return V8Reserve(hint, size, alignment, most);
  if (auto r = reservations.Take(size, alignment)) return r;
  auto r = V8Reserve(hint, size, alignment, most);
  if (r) reservations.Add(*r);
  return r;
}

void Unreserve(Reservation r) {
  if (reservations.Keep(r)) return;
  blocks.Forget(r.base, r.size);
  V8Unreserve(r);
}

// Segments come and go by these two.
bool AllocateIn(Reservation* in, char* start, size_t size, Permission access) {
  reservations.Allocate(*in, 1);
  bool segment = size == kSegment && access == Permission::kReadWrite;
  if (segment && blocks.Take(start)) return true;
  if (!segment) blocks.Forget(start, size);
  if (!V8AllocateIn(in, start, size, access)) {
    reservations.Allocate(*in, -1);
    return false;
  }
  if (segment) blocks.Add(start, size);
  return true;
}

bool FreeIn(Reservation* in, char* start, size_t size) {
  reservations.Allocate(*in, -1);
  if (size == kSegment && blocks.Keep(start, size)) return true;
  blocks.Forget(start, size);
  return V8FreeIn(in, start, size);
}

// Pages of heaps come and go by their permissions. The last page of a snapshot loses the end that it does not need.
bool SetPermissions(char* start, size_t size, Permission access) {
  if (!v8x::Commit(start, size, access != Permission::kNoAccess)) return false;
  char* page = start - reinterpret_cast<uintptr_t>(start) % kPage;
  if (access == Permission::kReadWrite && page == start && size == kPage) {
    if (blocks.Take(start)) return true;
    if (!V8SetPermissions(start, size, access)) return false;
    blocks.Add(start, size);
    return true;
  }
  if (access == Permission::kNoAccess && (page == start ? blocks.Keep(start, size) : blocks.Shorten(page, start, size))) return true;
  blocks.Forget(start, size);
  return V8SetPermissions(start, size, access);
}

bool SetPermissionsIn(Reservation*, char* start, size_t size, Permission access) { return SetPermissions(start, size, access); }

bool Decommit(char* start, size_t size) {
  blocks.Forget(start, size);
  return V8Decommit(start, size);
}

bool DecommitIn(Reservation*, char* start, size_t size) { return Decommit(start, size); }

void Free(char* start, size_t size) {
  blocks.Forget(start, size);
  V8Free(start, size);
}

void Release(char* start, size_t size) {
  blocks.Forget(start, size);
  V8Release(start, size);
}

void Dispose(void* isolate) {
  closing = true;
  V8Dispose(isolate);
  closing = false;
}

void v8x_count_blocks(v8x_blocks* b) { blocks.Count(&b->kept, &b->reused); }

namespace v8x {
void TrimBlocks() { blocks.GiveAllBack(); }
}  // namespace v8x
