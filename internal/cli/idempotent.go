package cli

import (
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
)

// idempotent knows the workers whose active version is idempotent. While there is none, asking costs one load.
type idempotent struct {
	n       atomic.Int64
	workers sync.Map // of "owner/name"
}

// install notes what w, the new active version, is.
func (i *idempotent) install(w *events.Worker) {
	if !w.Idempotent {
		i.remove(w.Owner, w.Name)
		return
	}
	if _, known := i.workers.LoadOrStore(w.Target(), true); !known {
		i.n.Add(1)
	}
}

func (i *idempotent) remove(owner, name string) {
	if _, known := i.workers.LoadAndDelete(owner + "/" + name); known {
		i.n.Add(-1)
	}
}

// has is consumer.Config.Idempotent.
func (i *idempotent) has(owner, name string) bool {
	if i.n.Load() == 0 {
		return false
	}
	_, ok := i.workers.Load(owner + "/" + name)
	return ok
}
