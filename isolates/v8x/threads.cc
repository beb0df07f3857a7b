// What isolates keep of the threads that have been in them.
#include "v8x.h"

#include "state.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace v8x {
namespace {

std::mutex mutex;
std::vector<v8::Isolate*> open;  // by the mutex

}  // namespace

void Opened(v8::Isolate* i) {
  std::lock_guard<std::mutex> lock(mutex);
  open.push_back(i);
}

void Closing(v8::Isolate* i) {
  std::lock_guard<std::mutex> lock(mutex);
  auto at = std::find(open.begin(), open.end(), i);
  if (at == open.end()) return;
  *at = open.back();
  open.pop_back();
}

}  // namespace v8x

extern "C" void v8x_forget_thread(void) {
  std::lock_guard<std::mutex> lock(v8x::mutex);
  for (v8::Isolate* i : v8x::open) i->DiscardThreadSpecificMetadata();
}
