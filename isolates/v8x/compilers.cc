// Isolates whose code V8 does not optimize. V8 asks in one place, TieringManager::OnInterruptTick, before it gives a function or a
// loop to Maglev or TurboFan. The linker sends that question here (--wrap).
#include "v8x.h"

#include "state.h"

namespace v8::internal {
class Isolate;
}

#define USE_OPTIMIZER "_ZN2v88internal7Isolate13use_optimizerEv"
bool RealUseOptimizer(v8::internal::Isolate*) __asm__("__real_" USE_OPTIMIZER);
bool WrappedUseOptimizer(v8::internal::Isolate*) __asm__("__wrap_" USE_OPTIMIZER);

// Where it is not known whose JavaScript runs, nothing is optimized.
bool WrappedUseOptimizer(v8::internal::Isolate* isolate) {
  v8x_context* c = v8x::current;
  return c && !c->owner->baseline && RealUseOptimizer(isolate);
}

extern "C" void v8x_baseline(v8x_isolate* i) { i->baseline = true; }
