// What becomes of the pages of a closed isolate. V8 keeps them for others, and has another isolate's message loop free
// them after eight seconds; nothing runs message loops here, so it kept them, and a task for each, forever. They are
// freed at once, and so cleared before another isolate gets them (blocks.cc).
namespace v8::internal {
class Isolate;
class PagePool;
}  // namespace v8::internal

using v8::internal::Isolate;
using v8::internal::PagePool;

// Frees the pages that the pool keeps for an isolate.
void ReleaseImmediately(PagePool*, Isolate*) __asm__("_ZN2v88internal8PagePool18ReleaseImmediatelyEPNS0_7IsolateE");

// The linker sends the call of every isolate that goes here (--wrap).
void ReleaseOnTearDown(PagePool*, Isolate*) __asm__("__wrap__ZN2v88internal8PagePool17ReleaseOnTearDownEPNS0_7IsolateE");

void ReleaseOnTearDown(PagePool* pool, Isolate* isolate) { ReleaseImmediately(pool, isolate); }
