// Package compat has tests that check three things: published npm packages run unchanged in workers, the types for
// editors match the runtime, and bindings and names of Cloudflare are as their pages say. Its workers and the exact
// versions of the packages are in testdata. Only these tests use npm.
package compat
