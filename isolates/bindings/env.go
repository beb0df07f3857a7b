// Package bindings has the Go half of env. It passes a worker's bindings to a context, and handles the calls that a
// context makes on them.
//
// js/events/env.js is the other half. A new kind of binding needs a file here, an entry there, and a field in
// events.Bindings.
package bindings

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Encode adds a worker's bindings to the call that prepares a context: strings, queues, then JSON texts, each as name,
// value, name, value. Strings are its vars and the values of its secrets.
func Encode(call *v8x.Call, b events.Bindings, s *Secrets) *v8x.Call {
	texts := pairs(b.Vars)
	if s != nil {
		texts = append(texts, s.values()...)
	}
	return call.Strings(texts).Strings(pairs(b.Queues)).Strings(pairs(b.JSON))
}

func pairs(values map[string]string) []string {
	list := make([]string, 0, 2*len(values))
	for name, value := range values {
		list = append(list, name, value)
	}
	return list
}
