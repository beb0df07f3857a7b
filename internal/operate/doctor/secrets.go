package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// secretStats is what a process tells of secrets. It has names and no values.
type secretStats struct {
	Recipients []string `json:"recipients"`
	Stored     int      `json:"stored"`
	Broken     []string `json:"broken"`
	Held       []string `json:"held"`
}

// secretsFound is what all processes tell of secrets.
type secretsFound struct {
	stored  int
	keyless []string            // nodes that have no key
	firsts  map[string][]string // nodes by the recipient that they encrypt to
	broken  []string
	held    []string
}

func (f *secretsFound) take(node string, s secretStats) {
	f.stored = max(f.stored, s.Stored)
	if len(s.Recipients) == 0 {
		f.keyless = append(f.keyless, node)
	} else {
		if f.firsts == nil {
			f.firsts = map[string][]string{}
		}
		f.firsts[s.Recipients[0]] = append(f.firsts[s.Recipients[0]], node)
	}
	f.broken = append(f.broken, s.Broken...)
	for _, held := range s.Held {
		f.held = append(f.held, node+": "+held)
	}
}

// mostNamed is how many findings of a kind a line names.
const mostNamed = 5

func someOf(list []string) string {
	slices.Sort(list)
	list = slices.Compact(list)
	if more := len(list) - mostNamed; more > 0 {
		return strings.Join(list[:mostNamed], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(list, "; ")
}

// report adds the lines about secrets. A fleet that stores none gets no line.
func (f *secretsFound) report(p *checker) {
	fine := true
	bad := func(do, format string, args ...any) {
		fine = false
		p.bad("secrets", do, format, args...)
	}
	if len(f.held) > 0 {
		bad("give each process PINWHEEL_SECRETS_KEY with the identities of the others, and set what is missing with 'pinwheel secrets set'",
			"workers lack their secrets: %s", someOf(f.held))
	}
	if len(f.broken) > 0 {
		bad("set them again with 'pinwheel secrets set', or remove them", "stored secrets cannot be opened: %s", someOf(f.broken))
	}
	if f.stored > 0 && len(f.keyless) > 0 {
		bad("start them with the PINWHEEL_SECRETS_KEY of the others", "stored: %d; processes have no key: %s", f.stored, someOf(f.keyless))
	}
	if len(f.firsts) > 1 {
		fine = false
		p.warn("secrets", "expected during a rotation; else give all the same PINWHEEL_SECRETS_KEY", "processes encrypt to %d different keys", len(f.firsts))
	}
	if fine && f.stored > 0 {
		p.ok("secrets", "stored: %d; every process has the key", f.stored)
	}
}
