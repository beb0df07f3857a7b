// Package compat has tests that check four things: published npm packages run unchanged in workers, the types for
// editors match the runtime, bindings and names of Cloudflare are as their pages say, and the workers and clients in
// examples do what their comments say. Its workers and the exact versions of the packages are in testdata. Only these
// tests use npm.
package compat
