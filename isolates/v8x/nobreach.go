//go:build !breach

package v8x

// hasBreach: only the build tag breach gives contexts the global __breach.
const hasBreach = false
