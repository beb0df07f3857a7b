package doctor

import "fmt"

// Buckets that processes follow.
const (
	bucketWorkers     = "PINWHEEL_WORKERS"
	bucketDeployments = "PINWHEEL_DEPLOYMENTS"
)

// followed is how far a process has followed what deploys store: the newest revision of each bucket that it has taken.
type followed struct {
	Workers     uint64 `json:"workers"`
	Deployments uint64 `json:"deployments"`
}

// storedDeploys are the newest revisions.
func storedDeploys(all []found) (newest followed) {
	for _, f := range all {
		switch {
		case f.Bucket == nil || f.Finding.Stream == nil:
		case f.Bucket.Bucket == bucketWorkers:
			newest.Workers = f.Finding.Stream.State.LastSeq
		case f.Bucket.Bucket == bucketDeployments:
			newest.Deployments = f.Finding.Stream.State.LastSeq
		}
	}
	return newest
}

// deploysFound is what all processes tell of deploys.
type deploysFound struct {
	newest followed
	old    []string // nodes of a release that knows no deployments
	behind []string // nodes that have not taken all, with how far they are
}

func (f *deploysFound) take(node string, at *followed) {
	switch {
	case at == nil:
		f.old = append(f.old, node)
	case at.Workers < f.newest.Workers || at.Deployments < f.newest.Deployments:
		f.behind = append(f.behind, fmt.Sprintf("%s (versions %d of %d, deployments %d of %d)", node, at.Workers, f.newest.Workers,
			at.Deployments, f.newest.Deployments))
	}
}

func (f *deploysFound) report(p *checker) {
	if len(f.old) > 0 {
		p.warn("deploys", "let all run the same release before you use rollbacks, shares and aliases",
			"processes of an earlier release run the newest version of each worker, whatever deployments say: %s", someOf(f.old))
	}
	if len(f.behind) > 0 {
		p.warn("deploys", "see their logs; what they have goes on", "processes have not taken all that deploys stored: %s",
			someOf(f.behind))
	}
}
