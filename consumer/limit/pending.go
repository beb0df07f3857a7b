package limit

import (
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// maxCalls is how many calls and parts of bodies may wait to be stored. Further ones are refused.
	maxCalls = 1 << 14
	// maxOwnerCalls is how many of these one owner may have, once half of the places are taken.
	maxOwnerCalls = 1 << 11
)

// Pending counts the calls and parts that wait to be stored, by owner.
type Pending struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Begin counts one more. It returns false when there are too many already.
func (p *Pending) Begin(owner string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= maxCalls || p.all >= maxCalls/2 && p.of[owner] >= maxOwnerCalls && !guard.RequestRates.Off() {
		return false
	}
	if p.of == nil {
		p.of = make(map[string]int)
	}
	p.all++
	p.of[owner]++
	return true
}

// End counts one less.
func (p *Pending) End(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.of[owner]--; p.of[owner] == 0 {
		delete(p.of, owner)
	}
}

// Full returns why Begin refused.
func (p *Pending) Full(owner string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[owner] >= maxOwnerCalls {
		return fmt.Sprintf("%d calls and parts of bodies of owner %s wait to be stored: it may have no more", p.of[owner], owner)
	}
	return "too many calls wait to be stored"
}
