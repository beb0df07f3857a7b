package doctor

import (
	"fmt"
	"strings"
	"time"
)

// pausedOf is what a process reports of what is paused.
type pausedOf struct {
	Paused      int         `json:"paused"` // owners and workers
	PausedFirst []pausedOne `json:"pausedFirst"`
}

type pausedOne struct {
	Owner  string    `json:"owner"`
	Worker string    `json:"worker"` // "" = all
	Since  time.Time `json:"since"`
}

// take keeps the report of the process that knows of most.
func (a *pausedOf) take(o pausedOf) {
	if o.Paused > a.Paused {
		*a = o
	}
}

func (a *pausedOf) report(p *checker) {
	if a.Paused == 0 {
		return
	}
	names := make([]string, len(a.PausedFirst))
	for i, one := range a.PausedFirst {
		if names[i] = one.Owner; one.Worker != "" {
			names[i] += "/" + one.Worker
		}
		names[i] += " since " + one.Since.UTC().Format(time.RFC3339)
	}
	p.warn("paused", "'pinwheel paused' lists them, and 'pinwheel resume' ends it",
		"%d owners and workers are paused: their events are stored and do not start: %s", a.Paused,
		more(names, a.Paused))
}

// more joins some names of n.
func more(names []string, n int) string {
	text := strings.Join(names, "; ")
	if left := n - len(names); left > 0 {
		text += fmt.Sprintf("; and %d more", left)
	}
	return text
}

// sourceStats is what a process reports of the sources of all workers.
type sourceStats struct {
	Sources int `json:"sources"`
	Failing int `json:"failing"`
	Behind  int `json:"behind"` // of those that do not fail
}

// sourcesFound is the worst that processes report of sources. Each process reads all of them.
type sourcesFound struct{ sourceStats }

func (a *sourcesFound) take(o *sourceStats) {
	if o != nil && (a.Sources == 0 || o.Failing > a.Failing || o.Failing == a.Failing && o.Behind > a.Behind) {
		a.sourceStats = *o
	}
}

func (a *sourcesFound) report(p *checker) {
	const do = "'pinwheel sources ls' shows each with its error"
	switch {
	case a.Sources == 0:
	case a.Failing > 0:
		p.bad("sources", do, "%d of %d sources of workers are not read", a.Failing, a.Sources)
	case a.Behind > 0:
		p.warn("sources", do+"; give the owners more room, or start more processes",
			"%d of %d sources of workers are behind: messages have waited there for more than 10 minutes without a break",
			a.Behind, a.Sources)
	default:
		p.ok("sources", "%d sources of workers: none fails or is far behind", a.Sources)
	}
}
