package cells

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
)

// Account says what became of the cells of a process, and what keeps others from running. It is for people.
type Account struct {
	Confine string `json:"confine"` // PINWHEEL_CELL_CONFINE
	Cgroups bool   `json:"cgroups"` // each cell has one, with limits
	// NoCgroups says why they have none.
	NoCgroups string `json:"noCgroups,omitempty"`
	Most      int    `json:"most"`   // cells that there may be at once
	Starts    uint64 `json:"starts"` // cells that the process has had
	// Probed says that the next fields are known: a cell was started, or a probe.
	Probed bool `json:"probed"`
	// Unconfined are the parts of the confinement of the last one that the system refused, each with the reason.
	Unconfined []string `json:"unconfined,omitempty"`
	Fault      string   `json:"fault,omitempty"` // why the last one did not start; "" = it did
	// Waiting are classes that have waited longer than a moment for the end of another cell, at most mostNamed.
	Waiting     []string `json:"waiting,omitempty"`
	MoreWaiting int      `json:"moreWaiting,omitempty"` // further classes
	// Ends are the last bad ends of the last hour, the oldest first: at most mostEnds of each kind.
	Ends []End `json:"ends,omitempty"`
}

// End is the bad end of a cell, or of its start.
type End struct {
	At     time.Time `json:"at"`
	How    string    `json:"how"` // died, memory, lie or start: as in pinwheel_cell_ends_total
	Class  string    `json:"class"`
	Owners []string  `json:"owners,omitempty"` // whose workers it had, at most mostOwners
	More   int       `json:"more,omitempty"`   // further owners
	Why    string    `json:"why"`              // at most mostWhy bytes; a cell may have written a part of it
}

const (
	mostEnds = 10  // bad ends of a kind
	mostWhy  = 500 // of a bad end, in bytes
	// mostNamed is how many waiting classes an Account names.
	mostNamed = 20
	endsLast  = time.Hour
	// aMoment is how long a class waits for room that is made: until a cell that rests has ended.
	aMoment = time.Second
)

// Add adds the account of another process with the same configuration.
func (a *Account) Add(o Account) {
	a.Confine, a.Fault = cmp.Or(a.Confine, o.Confine), cmp.Or(a.Fault, o.Fault)
	a.Cgroups, a.NoCgroups = a.Cgroups || o.Cgroups, cmp.Or(a.NoCgroups, o.NoCgroups)
	a.Most, a.Starts, a.Probed = a.Most+o.Most, a.Starts+o.Starts, a.Probed || o.Probed
	if len(a.Unconfined) == 0 {
		a.Unconfined = o.Unconfined
	}
	a.Waiting, a.MoreWaiting = append(a.Waiting, o.Waiting...), a.MoreWaiting+o.MoreWaiting
	a.Ends = append(a.Ends, o.Ends...)
}

// Account describes the cells of the process. Any goroutine may call it.
func (p *Pools) Account() Account {
	now := time.Now()
	a := p.metrics.account(now)
	a.Confine, a.Most = p.cfg.Confine, p.cfg.Most
	a.Cgroups, a.NoCgroups = p.cfg.NoCgroups == "", p.cfg.NoCgroups
	for _, c := range p.waiting(now.Add(-aMoment)) {
		a.Waiting = append(a.Waiting, c.name)
	}
	slices.Sort(a.Waiting)
	a.MoreWaiting = max(0, len(a.Waiting)-mostNamed)
	a.Waiting = a.Waiting[:len(a.Waiting)-a.MoreWaiting]
	return a
}

// Probed tells what a probe has found: the parts of the confinement that the system refuses, or why no cell starts. Any
// goroutine may call it.
func (p *Pools) Probed(refused []string, err error) { p.metrics.found(refused, err) }

// waiting returns the classes that have waited for room since then, or longer.
func (p *Pools) waiting(since time.Time) (list []*class) {
	p.mu.Lock()
	all := append([]*class(nil), p.byPool...)
	p.mu.Unlock()
	for _, c := range all {
		if c == nil {
			continue
		}
		c.mu.Lock()
		waits := !c.waits.IsZero() && !c.waits.After(since)
		c.mu.Unlock()
		if waits {
			list = append(list, c)
		}
	}
	return list
}

// waitingOwners is how many owners have events whose class waits for room.
func (p *Pools) waitingOwners() (n int) {
	classes := map[string]bool{}
	for _, c := range p.waiting(time.Now()) {
		classes[c.name] = true
	}
	if len(classes) == 0 || p.cfg.Queued == nil {
		return 0
	}
	for _, owner := range p.cfg.Queued() {
		if classes[p.cfg.ClassOf(owner)] {
			n++
		}
	}
	return n
}

// enter waits for room, and notes that the class does.
func (c *class) enter(enter func() bool) bool {
	c.mu.Lock()
	c.waits = time.Now()
	c.mu.Unlock()
	ok := enter()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = time.Time{}
	return ok
}

// badEnd is how the cell ended, for people.
func (c *cell) badEnd(how, why string) End {
	e := End{How: how, Class: c.class.name, Why: why, Owners: c.ownersOf()}
	slices.Sort(e.Owners)
	e.More = max(0, len(e.Owners)-mostOwners)
	e.Owners = e.Owners[:len(e.Owners)-e.More]
	return e
}

// past is what an Account tells of cells that have started or ended. The mutex of the metrics guards it.
type past struct {
	starts     uint64
	probed     bool
	unconfined []string
	fault      string
	bad        map[string][]End // by how
}

// found notes how a cell, or a probe, has started.
func (m *metrics) found(refused []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probed, m.unconfined, m.fault = true, refused, ""
	if err != nil {
		var missing *spawn.UnconfinedError
		if errors.As(err, &missing) {
			m.unconfined = missing.Refused
		}
		m.fault = short(err.Error())
	}
}

// started counts a cell that has started.
func (m *metrics) started(refused []string) {
	m.found(refused, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts++
}

// badly counts and keeps a bad end.
func (m *metrics) badly(e End) {
	m.ended(e.How)
	m.mu.Lock()
	defer m.mu.Unlock()
	e.At, e.Why = time.Now(), short(e.Why)
	list := append(m.bad[e.How], e)
	m.bad[e.How] = slices.Clone(list[max(0, len(list)-mostEnds):])
}

// short is a text that may have what a cell has sent: printable, and not long.
func short(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), mostWhy)], ""))
}

// account returns what is kept.
func (m *metrics) account(now time.Time) Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := Account{Starts: m.starts, Probed: m.probed, Unconfined: slices.Clone(m.unconfined), Fault: m.fault}
	for _, list := range m.bad {
		for _, e := range list {
			if now.Sub(e.At) < endsLast {
				a.Ends = append(a.Ends, e)
			}
		}
	}
	slices.SortFunc(a.Ends, func(x, y End) int { return x.At.Compare(y.At) })
	return a
}

// cgroups is the part of the confinement that no system has to give, in the metric.
const cgroups = "cgroups"

// parts says of each part of the confinement whether cells have it; nil = it is not known.
func (a *Account) parts() map[string]bool {
	if !a.Probed || a.Fault != "" && len(a.Unconfined) == 0 {
		return nil
	}
	has := map[string]bool{cgroups: a.Cgroups}
	for _, part := range confine.CellParts {
		has[part] = a.Confine != "off" && !slices.ContainsFunc(a.Unconfined, func(text string) bool {
			return strings.HasPrefix(text, part+": ")
		})
	}
	return has
}
