package isolates

import "github.com/pinwheel-run/pinwheel/events"

// release identifies a version of a worker. Owners share nothing, not even identical code.
type release struct{ owner, worker, version, hash string }

func releaseOf(w *events.Worker) release { return release{w.Owner, w.Name, w.Version, w.Hash} }
