package parking

import (
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

// workerOwners returns at most n owners of a lane that have workers and follow after, in order. The first follows the
// last.
func workerOwners(c *catalog.Catalog, lane int, after string, n int) []string {
	var owners []string
	for owner := range c.Owners() {
		if events.LaneOf(owner) == lane {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	at, found := slices.BinarySearch(owners, after)
	if found {
		at++
	}
	n = min(n, len(owners))
	turn := slices.Concat(owners[at:], owners[:at])
	return turn[:n]
}
