// Package flow says what a fleet does: rates, waiting times and what is stored, from two looks at all processes.
// `pinwheel top` and the console show it.
package flow
