package cli

import (
	"context"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// actives are the versions of workers that this process runs. The zero value has none.
type actives struct {
	mu sync.Mutex
	of map[string]active // by OWNER/WORKER
}

type active struct {
	version string
	number  int
}

func (a *actives) install(w *events.Worker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]active{}
	}
	a.of[w.Target()] = active{w.Version, w.Number}
}

func (a *actives) remove(owner, worker string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, owner+"/"+worker)
}

func (a *actives) get(target string) active {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[target]
}

// activeJSON is what a process says of a worker.
type activeJSON struct {
	process
	Version string `json:"version"`          // that runs here; empty: none
	Number  int    `json:"number,omitempty"` // of the version; a later one has a higher one
	// Processes are all of the fleet that this one knows of, itself among them.
	Processes []process `json:"processes"`
	// Left are the ids of the last that said that they go.
	Left []string `json:"left,omitempty"`
}

// workersActive tells which version of a worker this process runs, and what other processes there are to ask.
func (c *control) workersActive(_ context.Context, r request) (any, error) {
	var req struct {
		Worker string `json:"worker"`
	}
	if err := decodeRequest(r.data, &req); err != nil {
		return nil, err
	}
	if _, _, err := events.ParseTarget(req.Worker); err != nil {
		return nil, refused("%v", err)
	}
	v := c.f.actives.get(req.Worker)
	self, all := c.f.members.known()
	return activeJSON{self, v.version, v.number, all, c.f.members.gone()}, nil
}
