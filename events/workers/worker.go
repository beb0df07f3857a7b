package workers

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Worker is one version of a named handler bundle of an owner. It never changes after its creation, so every thread may
// read it.
type Worker struct {
	Owner string
	Name  string

	Version string // "<number>-<first 12 hex digits of the hash>"
	Number  int    // 1 for the first deploy of this worker, then one more for each deploy
	Hash    string // SHA-256 over bundle and manifest, hex

	Spec // what its manifest says

	Handlers  []events.Kind // kinds that the module has a handler for
	Queue     bool          // it has a queue handler: tasks come to it in batches
	Code      string        // one ES module, imports bundled
	File      string        // its name in stack traces, for example "hello.js"
	SourceMap []byte        // version 3 JSON; nil = none
	Modules   []*Module     `json:",omitempty"` // of WebAssembly, which Code gets from pinwheel:wasm; in the order of Hash

	DeployedAt time.Time

	Tag     string // what the deployer calls the version, for example a commit
	Message string // what the deployer says about it
}

// Target is "owner/name".
func (w *Worker) Target() string { return w.Owner + "/" + w.Name }

// Module is a module of WebAssembly in a bundle. Workers share it.
type Module struct {
	Hash string // SHA-256, hex
	Code []byte
}

// ModuleBytes is how many bytes the modules of WebAssembly have.
func (w *Worker) ModuleBytes() (n int) {
	for _, m := range w.Modules {
		n += len(m.Code)
	}
	return n
}

// Module returns the bytes of the module of WebAssembly with that hash. Nobody may change them.
func (w *Worker) Module(hash string) ([]byte, error) {
	for _, m := range w.Modules {
		if m.Hash == hash {
			return m.Code, nil
		}
	}
	return nil, fmt.Errorf("the bundle has no module of WebAssembly with the hash %q", hash)
}

// Handlers are what a module handles.
type Handlers struct {
	Kinds []events.Kind // of events
	Queue bool          // tasks come in batches, to the queue handler
	// Entrypoints: the module exports classes that extend WorkerEntrypoint. Other workers may call their methods.
	Entrypoints bool
}

// Installation is what a process has of a worker: the versions that events may run in, and the deployment that divides
// the events among them.
type Installation struct {
	Owner, Name string
	Versions    []*Worker  // oldest first; among them all that the deployment names
	Deployment  Deployment // of a worker without a deployment: its newest version has everything
}

// Only is the installation of a worker that has one version.
func Only(w *Worker) Installation {
	return Installation{
		Owner: w.Owner, Name: w.Name, Versions: []*Worker{w},
		Deployment: Deployment{Number: w.Number, Split: []Share{{w.Version, 100}}, At: w.DeployedAt},
	}
}

// Target is "owner/name".
func (i Installation) Target() string { return i.Owner + "/" + i.Name }

// Version is the version with that name, or nil.
func (i Installation) Version(version string) *Worker {
	for _, w := range i.Versions {
		if w.Version == version {
			return w
		}
	}
	return nil
}

// Of returns the version that runs e, or nil. e.Version is a whole version, its number, or an alias. Without it, the
// split decides.
func (i Installation) Of(e *events.Event) *Worker {
	if e.Version == "" {
		if c := i.Deployment.Candidate(); c.Version != "" && e.SplitPoint() < Points(c.Percent) {
			return i.Version(c.Version)
		}
		return i.Active()
	}
	name := e.Version
	if of, ok := i.Deployment.Aliases[name]; ok {
		name = of
	}
	for _, w := range i.Versions {
		if w.Version == name || strconv.Itoa(w.Number) == name {
			return w
		}
	}
	return nil
}

// Active is the version that has all events, or all but those of a new one; nil = none is active.
func (i Installation) Active() *Worker { return i.Version(i.Deployment.Base()) }
