// Package confine bounds what code that has broken out of V8 can do in its process. A process that runs JavaScript is
// started by an OS thread that has given up what the process does not need: files (Landlock), calls of the kernel
// (seccomp), capabilities. The process inherits that, and gives up more when it has started.
//
//	Start → a thread of its own → Plan.Enter → fork, exec → the process → Self
//
// On other systems than Linux nothing is confined, and all of it says so.
package confine
