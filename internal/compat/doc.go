// Package compat holds tests that published npm packages run in workers without a change, and that the types for
// editors fit the runtime. Its workers and the exact versions of the packages are in testdata; only these tests use npm.
package compat
