// Package breach does what code would try that has broken out of V8: calls of the kernel from inside a process of the
// fleet. For tests only, on Linux.
package breach
