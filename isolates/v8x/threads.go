package v8x

// #include "v8x.h"
import "C"

// ForgetThread has all isolates forget the calling thread, which is about to end: each keeps a little of every thread that has been in it, for as
// long as it lives. The thread must be in none of them.
func ForgetThread() { C.v8x_forget_thread() }
