package bindings

import (
	"fmt"
	"io"
	"sync/atomic"
)

// Secrets are the values of a worker's secrets, for the contexts that are made with them. They never change: another
// value of one of them makes other Secrets. A nil *Secrets has no values and is never replaced.
type Secrets struct {
	values   func() []string // name, value, name, value … A function, because fmt prints what is in unexported fields
	replaced atomic.Bool
}

// NewSecrets returns Secrets with these values, by name.
func NewSecrets[V ~string](values map[string]V) *Secrets {
	list := make([]string, 0, 2*len(values))
	for name, value := range values {
		list = append(list, name, string(value))
	}
	return &Secrets{values: func() []string { return list }}
}

// Values returns the names and the values: name, value, name, value … It is for whoever hands them to JavaScript, here
// or in a cell, and for nobody who writes or prints them.
func (s *Secrets) Values() []string { return s.values() }

// Replace marks the values as old: no further event begins in a context with them. Any goroutine may call it.
func (s *Secrets) Replace() { s.replaced.Store(true) }

// Replaced reports whether there are newer values. Any goroutine may call it.
func (s *Secrets) Replaced() bool { return s != nil && s.replaced.Load() }

// Format hides the values from every verb of fmt.
func (s *Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[secrets]") }
