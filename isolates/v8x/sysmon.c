// Go's sysmon thread sleeps for 20 µs at a time while threads of Go are in C++, and V8's are in it for as long as handlers run. Each time
// that it wakes, it takes a CPU from one of them. With a timer slack the kernel wakes it later, with another timer or after
// V8X_SYSMON_SLACK. What it does can wait that long: it takes Go's P from a thread in C++ that has goroutines waiting, and
// interrupts goroutines after 10 ms (docs/development/adr/0044).
//
// A thread sets only its own slack, and sysmon runs nothing of ours. So the linker sends the call by which Go makes all its threads here
// (--wrap). Go starts sysmon before any other thread. The threads that sysmon starts would inherit its slack: each sets its own.
#define _GNU_SOURCE
#include "v8x.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct start {
  void* (*run)(void*);
  void* arg;
  bool is_sysmon;
};

static atomic_bool started;        // sysmon has been
static unsigned long usual;        // slack of the thread that started it
static atomic_int sysmon;          // its thread
static atomic_ulong sysmon_slack;  // ns, as the kernel has it

static void* with_slack(void* p) {
  struct start s = *(struct start*)p;
  free(p);
  prctl(PR_SET_TIMERSLACK, s.is_sysmon ? V8X_SYSMON_SLACK : usual, 0, 0, 0);
  if (s.is_sysmon) {
    sysmon_slack = (unsigned long)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    sysmon = (int)syscall(SYS_gettid);
  }
  return s.run(s.arg);
}

// Of runtime/cgo. They return what pthread_create does.
int __real__cgo_try_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* arg);

int __wrap__cgo_try_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* arg) {
  struct start* s = malloc(sizeof *s);
  if (!s) return EAGAIN;
  *s = (struct start){run, arg, !atomic_exchange(&started, true)};
  if (s->is_sysmon) usual = (unsigned long)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  int failed = __real__cgo_try_pthread_create(thread, attributes, with_slack, s);
  if (failed) free(s);  // Go ends the process
  return failed;
}

int v8x_sysmon(unsigned long* slack) {
  int tid = sysmon;  // stored after the slack
  *slack = sysmon_slack;
  return tid;
}
