// Package bindings has the Go half of env. It passes a worker's bindings to a context, and handles the calls that a
// context makes on them.
//
// The folder js/bindings is the other half. A new kind of binding is a file there, a file with its methods in
// internal/env/bindings, and three lines: a field in workers.Bindings, its row in bindingKinds, and its line in
// internal/env/bindings.New. internal/test/newbinding shows it.
package bindings

import (
	"encoding/json"
	"slices"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Encode adds a worker's bindings to the call that prepares a context: strings and JSON texts, each as name, value,
// name, value; then the other bindings as kind, name, value. Strings are its vars and the values of its secrets.
func Encode(call *v8x.Call, w *workers.Worker, s *Secrets) *v8x.Call {
	texts, others := pairs(w.Vars), []string(nil)
	if s != nil {
		texts = append(texts, s.Values()...)
	}
	for _, binding := range w.Env() {
		if binding.Kind != workers.BindingVar && binding.Kind != workers.BindingJSON {
			value := binding.Value
			if binding.Kind == workers.BindingVersion {
				value = version(w)
			}
			others = append(others, string(binding.Kind), binding.Name, value)
		}
	}
	if name := FilesName(w); name != "" {
		others = append(others, KindFiles, name, "")
	}
	return call.Strings(slices.Clip(texts)).Strings(pairs(w.JSON)).Strings(others)
}

// version is what env tells of the version that runs, as JSON.
func version(w *workers.Worker) string {
	// strings: no error
	text, _ := json.Marshal(map[string]string{"id": w.Version, "tag": w.Tag, "timestamp": w.DeployedAt.UTC().
		Format(isoTime)})
	return string(text)
}

// isoTime is the form of Date.toISOString().
const isoTime = "2006-01-02T15:04:05.000Z"

func pairs(values map[string]string) []string {
	list := make([]string, 0, 2*len(values))
	for name, value := range values {
		list = append(list, name, value)
	}
	return list
}
