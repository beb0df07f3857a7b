// Package breach does what code would try that has broken out of V8, in two ways. Targets makes calls of the kernel in
// Go, from inside a process of the fleet. Attempts are made by the JavaScript of a worker, in a pinwheel with the build
// tag breach: it gives JavaScript any call of the kernel and any memory. For tests only, on Linux.
package breach
