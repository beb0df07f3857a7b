package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// found is a resource and its state in JetStream.
type found struct {
	resources.Resource
	resources.Finding
}

// resources compares what is in JetStream with what this binary would create.
func (p *checker) resources(ctx context.Context) []found {
	var all []found
	as := 0
	var missing []resources.Resource
	foreign := map[string]bool{} // streams of another fleet
	for _, a := range p.Resources {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		f, err := resources.Look(ctx, p.js, a)
		cancel()
		switch {
		case err != nil:
			p.bad("assets", "see that this user may use $JS.API, and that the cluster has a leader", "%v", err)
		case f.Foreign != nil:
			foreign[a.StreamName()] = true
			p.bad("prefix", "set PINWHEEL_PREFIX as the fleet has it", "%v", f.Foreign)
		case a.Consumer != nil && foreign[a.Of]: // its consumers are foreign too
		case f.Missing:
			missing = append(missing, a)
		case f.Newer():
			p.warn("assets", "run the doctor of the newer binary", "%s was made by a newer Pinwheel (level %d; this binary knows %d)", a, f.Level,
				resources.Level)
		case len(f.Drift) > 0:
			list := make([]string, len(f.Drift))
			for i, d := range f.Drift {
				list[i] = d.String()
			}
			p.warn("assets", "it stays so, and processes work with it: set the variables as the fleet has it, or change it with 'pinwheel resources apply'", "%s: %s", a, strings.Join(list, ", "))
		default:
			as++
		}
		if err == nil && !f.Missing {
			all = append(all, found{a, f})
		}
	}
	p.missing(missing)
	if as > 0 {
		p.ok("assets", "%d of %d streams, consumers and buckets are as this binary makes them", as, len(p.Resources))
	}
	return all
}

// longInterval is a sync_interval that is too long to be intended.
const longInterval = 10 * time.Minute

const syncDo = `set sync_interval: "2m" in the jetstream block, with the quotes: nats-server reads 2m without them as 2 000 000 seconds`

// durability checks which failures a stored event survives.
func (p *checker) durability(ctx context.Context, all []found) {
	replicas := 0
	for _, f := range all {
		if s := f.Finding.Stream; s != nil && (replicas == 0 || s.Config.Replicas < replicas) {
			replicas = s.Config.Replicas
		}
	}
	if replicas == 0 {
		return
	}
	sync, err := AskSync(ctx, p.NC, p.Monitors)
	words := sync.Words(replicas)
	if sync.Most > 0 {
		p.full("disk", "the fullest server's storage", sync.Stored, sync.Most)
	}
	if sync.Reservable > 0 {
		p.reserved("the server with the least left", sync.Reserved, sync.Reservable)
	}
	switch {
	case p.Fsync && sync.Known && !sync.Always:
		p.bad("durability", "set sync_interval: always in the jetstream block of every nats-server", "PINWHEEL_DURABILITY asks for fsync, and the server does not: %s", words)
	case p.Fsync && !sync.Known:
		p.warn("durability", "let PINWHEEL_NATS_MONITOR name the monitoring ports of all servers", "PINWHEEL_DURABILITY asks for fsync, and it is not known whether the server does: %v", err)
	case !sync.Known:
		p.ok("durability", "%s (%v)", words, err)
	case !sync.Always && sync.Interval > longInterval:
		p.bad("durability", syncDo, "a power cut loses what was acknowledged in the last %s: %s", sync.Interval, words)
	case !sync.Always && sync.Interval > DefaultInterval:
		p.warn("durability", syncDo, "sync_interval is %s, and nats-server's own is %s: %s", sync.Interval, DefaultInterval, words)
	default:
		p.ok("durability", "%s", words)
	}
	if servers := len(p.NC.Servers()); replicas == 1 && p.Replicas == 1 && servers >= 3 {
		p.warn("durability", "PINWHEEL_REPLICAS=3 pinwheel resources apply, and set it for all processes", "NATS has %d servers, and there is one copy of everything", servers)
	}
	if replicas < p.Replicas {
		p.bad("durability", "'pinwheel resources apply' raises them", "PINWHEEL_REPLICAS asks for %d copies, and there are streams of %d", p.Replicas,
			replicas)
	}
}

// silentCopy is for how long a server that runs may be silent towards the leader. It is asked every second.
const silentCopy = 10 * time.Second

// cluster checks the leader and the copies of each stream and consumer.
func (p *checker) cluster(all []found) {
	healthy, copies := 0, 0
	for _, f := range all {
		info := (*jetstream.ClusterInfo)(nil)
		if f.Info != nil {
			info = f.Info.Cluster
		} else {
			info = f.Finding.Stream.Cluster
		}
		if info == nil {
			continue
		}
		copies = max(copies, 1+len(info.Replicas))
		var late []string
		for _, r := range info.Replicas {
			switch {
			case r.Offline, r.Active > silentCopy:
				late = append(late, r.Name+" is offline")
			case resources.Behind(r):
				late = append(late, r.Name+" is behind")
			}
		}
		switch {
		case info.Leader == "":
			p.bad("cluster", "bring back servers until most of its copies are there", "%s has no leader: nothing is stored or delivered", f.Resource)
		case late != nil:
			p.warn("cluster", "stop no other server before all copies are current", "%s: %s", f.Resource, strings.Join(late, ", "))
		default:
			healthy++
		}
	}
	if healthy > 0 && copies > 1 {
		p.ok("cluster", "%d of %d have a leader and all their copies are current", healthy, len(all))
	}
}

// usage checks how full the streams are. A full stream refuses publishers.
func (p *checker) usage(all []found) {
	for _, f := range all {
		if f.Resource.Consumer == nil && f.Finding.Stream.Config.MaxBytes > 0 {
			p.full("disk", f.Resource.String(), f.Finding.Stream.State.Bytes, f.Finding.Stream.Config.MaxBytes)
		}
	}
}
