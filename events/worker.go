package events

import "time"

// Worker is one version of a named handler bundle of an owner. It never changes after its creation, so every thread may
// read it.
type Worker struct {
	Owner string
	Name  string

	Version string // "<number>-<first 12 hex digits of the hash>"
	Number  int    // 1 for the first deploy of this worker, then one more for each deploy
	Hash    string // SHA-256 over bundle and manifest, hex

	Spec // what its manifest says

	Handlers  []Kind // kinds that the module has a handler for
	Code      string // one ES module, imports bundled
	File      string // its name in stack traces, for example "hello.js"
	SourceMap []byte // version 3 JSON; nil = none

	DeployedAt time.Time
}

// Target is "owner/name".
func (w *Worker) Target() string { return w.Owner + "/" + w.Name }
