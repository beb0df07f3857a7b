//go:build breach

package v8x

// #cgo CXXFLAGS: -DV8X_BREACH
import "C"

// hasBreach: contexts have the global __breach of breach.cc.
const hasBreach = true
