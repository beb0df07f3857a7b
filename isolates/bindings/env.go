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

// Encode adds a worker's bindings to the call that prepares a context: vars, then queues, each as name, value, name,
// value.
func Encode(call *v8x.Call, b events.Bindings) *v8x.Call {
	return call.Strings(pairs(b.Vars)).Strings(pairs(b.Queues))
}

func pairs(values map[string]string) []string {
	list := make([]string, 0, 2*len(values))
	for name, value := range values {
		list = append(list, name, value)
	}
	return list
}
