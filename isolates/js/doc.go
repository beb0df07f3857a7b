// Package js is the JavaScript of every context: the web platform that handlers use, the op codes that Go and
// JavaScript exchange, and the start of V8 with a snapshot that has the runtime in it. Each folder is a part of the
// platform. order.txt has the order of evaluation.
package js
