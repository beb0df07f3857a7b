// Holding a thread that V8 does not let go: a signal whose handler sleeps. What the thread has locked stays locked for
// as long, so it is short; a caller that wants a thread held for long sends the signal again and again.
#include "state.h"
#include "v8x.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// No other code of the process uses it. Go has a handler for every signal, and does without this one.
int ThrottleSignal() { return SIGRTMAX - 2; }

// A thread that runs Go code is not held: Go stops all threads now and then, and would wait for this one.
void Sleep(int) {
  v8x_context* c = v8x::current;
  if (!c || c->asking.load(std::memory_order_relaxed)) return;
  int saved = errno;
  timespec t{0, V8X_THROTTLE_MS * 1000 * 1000};
  nanosleep(&t, nullptr);
  errno = saved;
}

}  // namespace

extern "C" {

void v8x_throttle_init(void) {
  struct sigaction a {};
  a.sa_handler = Sleep;
  a.sa_flags = SA_RESTART | SA_ONSTACK;
  sigfillset(&a.sa_mask);
  sigaction(ThrottleSignal(), &a, nullptr);
}

void v8x_throttle(int32_t tid) { syscall(SYS_tgkill, getpid(), tid, ThrottleSignal()); }

}  // extern "C"
