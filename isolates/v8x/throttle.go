package v8x

// #include "v8x.h"
import "C"

import "time"

// ThrottleTime is how long Throttle stops a thread.
const ThrottleTime = C.V8X_THROTTLE_MS * time.Millisecond

// Throttle stops the thread with that id for ThrottleTime, if the thread is in V8 then. A thread that runs Go code,
// even for host.ask, would stop all of Go with it, so it continues. Any goroutine may call Throttle. It does not wait.
func Throttle(tid int) { C.v8x_throttle(C.int32_t(tid)) }
