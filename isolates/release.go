package isolates

import "github.com/pinwheel-run/pinwheel/events"

// release names a version of a worker. Owners share nothing by it, not even code that is the same.
type release struct{ owner, worker, version, hash string }

func releaseOf(w *events.Worker) release { return release{w.Owner, w.Name, w.Version, w.Hash} }
