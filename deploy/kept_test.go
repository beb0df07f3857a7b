package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestOnlyAVersionStoredMeanwhileSupersedes(t *testing.T) {
	t.Parallel()
	stored := func(number int, revision uint64) *record {
		w := aWorker(t)
		w.Number, w.Version = number, version(number, w.Hash)
		r := newRecord(w, false)
		r.revision = revision
		return r
	}
	v1, v2, v3 := stored(1, 10), stored(2, 20), stored(3, 30)
	all := func(v *record) []workers.Share { return []workers.Share{{Version: v.version(), Percent: 100}} }
	mine := workers.Deployment{Number: 5, Split: all(v1)} // made when v2 was the newest version

	for what, c := range map[string]struct {
		records []*record
		newest  storedDeployment
		want    string
	}{
		"mine holds": {[]*record{v1, v2}, storedDeployment{Deployment: mine, seen: 20}, ""},
		"a version was stored, and has no record yet": {[]*record{v1, v2, v3}, storedDeployment{Deployment: mine, seen: 20},
			v3.version()},
		"a version was stored, and has a record": {
			[]*record{v1, v2, v3}, storedDeployment{Deployment: workers.Deployment{Number: 6, Split: all(v3)}, seen: 30},
			v3.version(),
		},
		"a version that mine knew was promoted after": {
			[]*record{v1, v2}, storedDeployment{Deployment: workers.Deployment{Number: 6, Split: all(v2)}, seen: 20}, "",
		},
	} {
		k := kept{records: c.records, entries: len(c.records), oldest: 10, deployment: c.newest}
		require.Equal(t, c.want, k.supersedes(mine, 20), what)
	}
}
