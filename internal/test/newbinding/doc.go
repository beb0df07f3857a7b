// Package newbinding has a test that adds a kind of binding as whoever builds Pinwheel does: testdata/counters.go with
// its methods, testdata/counters.js with what env has, and three lines in existing files. It builds Pinwheel with them,
// and runs a worker that uses the binding.
package newbinding
