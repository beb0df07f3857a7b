// Package offload does work that takes too long for a pinned thread on other goroutines: long operations of
// crypto.subtle, compression, and HTMLRewriter.
//
// A Pool bounds the work of the process and serves owners in turn. So an owner with much work delays only itself. A Job
// checks during its work whether its run continues. Its result is a Product, which the thread delivers to JavaScript.
// The algorithms are in the packages below: webcrypto (reached through subtle), compression, charset, rewriter.
package offload
