package doctor

import (
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// missing reports what a fleet has and this NATS has not. A process that starts creates it, but without what was in
// it, so what only deploys or operators can store again has advice of its own.
func (p *checker) missing(list []resources.Resource) {
	switch {
	case len(list) == 0:
		return
	case len(list) == len(p.Resources):
		p.bad("assets", "start a process with 'pinwheel serve'; if a fleet was here, restore its backup first: a process creates everything empty", "nothing of a fleet is here")
		return
	}
	var consumers, stores []string
	for _, r := range list {
		switch {
		case r.Bucket != nil && r.Bucket.Bucket == bucketWorkers:
			p.bad("workers", "restore it, or deploy all workers again ('pinwheel deploy' creates the bucket), before any process starts: "+
				"a process creates it empty and then has no worker, and without one events become dead letters. "+
				"Processes that run keep their workers for 24 hours, but follow no deploy while the bucket is missing. Earlier versions come back only with a backup",
				"missing: %s, with the records of all workers", r)
		case r.Consumer != nil:
			consumers = append(consumers, r.String())
		default:
			stores = append(stores, r.String())
		}
	}
	if consumers != nil {
		p.bad("assets", "start a process: it makes what is missing", "missing: %s", strings.Join(consumers, ", "))
	}
	if stores != nil {
		slices.Sort(stores)
		p.bad("assets", "restore it from a backup if it was there: a process that starts creates it empty", "missing: %s", strings.Join(stores, ", "))
	}
}
