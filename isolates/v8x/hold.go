package v8x

// #include "v8x.h"
import "C"

import "time"

// HoldTime is how long Hold stops a thread.
const HoldTime = C.V8X_HOLD_MS * time.Millisecond

// Hold stops the thread with that id where it is, for HoldTime, if it is in V8 then. One that runs Go code, be it for host.ask, would stop the
// world with it: it goes on. From any goroutine; it does not wait.
func Hold(tid int) { C.v8x_hold(C.int32_t(tid)) }
