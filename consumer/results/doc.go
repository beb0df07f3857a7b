// Package results stores the results of idempotent workers. An event that has succeeded is not run again, but answered
// with the stored result.
package results
