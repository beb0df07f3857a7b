package parking

import (
	"slices"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// workerOwners are the owners that have workers, by lane, and the names of their workers.
type workerOwners struct {
	mu    sync.Mutex
	lanes [events.Lanes]map[string]map[string]struct{}
}

func (r *workerOwners) add(owner, worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lane := &r.lanes[events.LaneOf(owner)]
	if *lane == nil {
		*lane = make(map[string]map[string]struct{})
	}
	if (*lane)[owner] == nil {
		(*lane)[owner] = make(map[string]struct{})
	}
	(*lane)[owner][worker] = struct{}{}
}

func (r *workerOwners) remove(owner, worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lane := r.lanes[events.LaneOf(owner)]
	delete(lane[owner], worker)
	if len(lane[owner]) == 0 {
		delete(lane, owner)
	}
}

// next returns at most n owners of a lane that follow after, in order. The first follows the last.
func (r *workerOwners) next(lane int, after string, n int) []string {
	r.mu.Lock()
	owners := make([]string, 0, len(r.lanes[lane]))
	for owner := range r.lanes[lane] {
		owners = append(owners, owner)
	}
	r.mu.Unlock()
	slices.Sort(owners)
	at, found := slices.BinarySearch(owners, after)
	if found {
		at++
	}
	n = min(n, len(owners))
	turn := slices.Concat(owners[at:], owners[:at])
	return turn[:n]
}

// has reports whether an owner has workers.
func (r *workerOwners) has(owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lanes[events.LaneOf(owner)][owner]) > 0
}

// any reports whether some owner has workers.
func (r *workerOwners) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, lane := range r.lanes {
		if len(lane) > 0 {
			return true
		}
	}
	return false
}
