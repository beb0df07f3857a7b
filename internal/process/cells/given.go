package cells

import (
	"encoding/json"
	"slices"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// given is what a cell knows: the workers whose attempts it has had, their secrets, and the policies of their owners.
// The caller locks.
type given struct {
	last    uint64
	numbers map[*workers.Worker]uint64
	workers map[uint64]*workers.Worker
	named   map[version]*workers.Worker
	secrets map[*workers.Worker]*isolates.Secrets // that were sent last
	owners  map[string][]string                   // names of workers, by owner
	since   codes                                 // what was given since the last count
	most    codes                                 // that nobody runs any more
}

// codes are versions of workers and the bytes of their code.
type codes struct{ versions, bytes int }

func (n *codes) add(w *workers.Worker) {
	n.versions, n.bytes = n.versions+1, n.bytes+len(w.Code)+w.ModuleBytes()
}

// over reports whether they are more than others.
func (n *codes) over(most codes) bool { return n.versions > most.versions || n.bytes > most.bytes }

// Bounds of what a cell is given of versions that the fleet no longer has. It keeps all: its calls may name one a
// moment after it has no context of it. Then it is replaced.
const (
	mostStale      = 1000     // versions
	mostStaleBytes = 64 << 20 // of code
)

// worn reports whether the cell is to be replaced, because it has versions that nobody runs any more: workers are those
// of the process. It counts them when enough were given since it last did.
func (g *given) worn(of *catalog.Catalog) bool {
	if !g.since.over(g.most) {
		return false
	}
	var stale codes
	for _, w := range g.workers {
		if in, ok := of.Installed(w.Owner, w.Name); !ok || in.Version(w.Version) != w {
			stale.add(w)
		}
	}
	g.since = codes{}
	return stale.over(g.most)
}

type version struct{ owner, name, version string }

func newGiven() given {
	return given{
		numbers: map[*workers.Worker]uint64{},
		workers: map[uint64]*workers.Worker{},
		named:   map[version]*workers.Worker{},
		secrets: map[*workers.Worker]*isolates.Secrets{},
		owners:  map[string][]string{},
		most:    codes{mostStale, mostStaleBytes},
	}
}

// add notes a worker that is given.
func (g *given) add(w *workers.Worker) (number uint64) {
	g.last++
	g.numbers[w], g.workers[g.last], g.named[version{w.Owner, w.Name, w.Version}] = g.last, w, w
	if names := g.owners[w.Owner]; !slices.Contains(names, w.Name) {
		g.owners[w.Owner] = append(names, w.Name)
	}
	g.since.add(w)
	return g.last
}

// has reports whether a version of the worker was given.
func (g *given) has(owner, name string) bool { return slices.Contains(g.owners[owner], name) }

// giveWorker has the cell know a worker, and everything that an attempt of it needs. It returns the worker's number.
// c.mu must be held.
func (c *cell) giveWorker(w *workers.Worker) uint64 {
	number := c.given.numbers[w]
	if number == 0 {
		if _, known := c.given.owners[w.Owner]; !known {
			c.givePolicy(w.Owner, *c.pools.cfg.Catalog.Policy(w.Owner))
		}
		number = c.given.add(w)
		text, err := json.Marshal(w)
		if err != nil { // strings and numbers: there is no error
			c.pools.log.Error().Err(err).Str("worker", w.Target()).Msg("a worker cannot be given to a cell")
		}
		f := c.conn.Begin(wire.Worker)
		f.Uint(number)
		f.Bytes(text)
		c.conn.End()
	}
	if len(w.Secrets) > 0 {
		c.giveSecrets(w, number)
	}
	return number
}

// giveSecrets sends the secrets of a worker, unless the cell has them. c.mu must be held.
func (c *cell) giveSecrets(w *workers.Worker, number uint64) {
	s, err := c.pools.cfg.Secrets(w)
	if err == nil && c.given.secrets[w] == s {
		return
	}
	c.given.secrets[w] = s
	f := c.conn.Begin(wire.Secrets)
	f.Uint(number)
	if err != nil {
		delete(c.given.secrets, w)
		f.Text(err.Error())
		f.Texts(nil)
	} else {
		f.Text("")
		f.Texts(s.Values())
	}
	c.conn.End()
}

// givePolicy sends the policy of an owner. c.mu must be held.
func (c *cell) givePolicy(owner string, p workers.Policy) {
	text, err := json.Marshal(p)
	if err != nil { // strings and numbers: there is no error
		c.pools.log.Error().Err(err).Str("owner", owner).Msg("a policy cannot be given to a cell")
	}
	f := c.conn.Begin(wire.Policy)
	f.Text(owner)
	f.Bytes(text)
	c.conn.End()
}
