//go:build !hostile

package isolates

// wholeSuite: without the tag TestHostile runs a sample.
const wholeSuite = false
