package v8x

// #include "v8x.h"
import "C"

// ForgetThread makes all isolates forget the calling thread, which is about to end. Otherwise each isolate keeps a
// little memory for every thread that has been in it, for as long as the isolate lives. The thread must not be in any
// isolate.
func ForgetThread() { C.v8x_forget_thread() }
