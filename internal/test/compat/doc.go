// Package compat has tests that check two things: published npm packages run unchanged in workers, and the types for
// editors match the runtime. Its workers and the exact versions of the packages are in testdata. Only these tests use
// npm.
package compat
