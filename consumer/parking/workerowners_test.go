package parking

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

func TestWorkerOwners(t *testing.T) {
	var c catalog.Catalog
	install := func(owner, name string) { c.Install(workers.Only(&workers.Worker{Owner: owner, Name: name})) }
	var lane3 []string
	for i := range 400 {
		owner := fmt.Sprint("o", i)
		h := fnv.New32a() // as JetStream computes it
		_, _ = h.Write([]byte(owner))
		require.Equal(t, int(h.Sum32()%events.Lanes), events.LaneOf(owner))
		install(owner, "a")
		install(owner, "b")
		if events.LaneOf(owner) == 3 {
			lane3 = append(lane3, owner)
		}
	}
	slices.Sort(lane3)
	require.Greater(t, len(lane3), 10)
	require.Equal(t, lane3, workerOwners(&c, 3, "", 1000))
	require.Equal(t, lane3[5:10], workerOwners(&c, 3, lane3[4], 5))
	require.Equal(t, append(lane3[len(lane3)-1:], lane3[0]), workerOwners(&c, 3, lane3[len(lane3)-2], 2))
	c.Remove(lane3[0], "a")
	require.Equal(t, lane3[0], workerOwners(&c, 3, "", 1)[0], "it has another")
	c.Remove(lane3[0], "b")
	require.Equal(t, lane3[1], workerOwners(&c, 3, "", 1)[0])
	require.Equal(t, lane3[1], workerOwners(&c, 3, lane3[0], 1)[0], "after one that is gone")
	require.Empty(t, workerOwners(&catalog.Catalog{}, 3, "", 5))
}
