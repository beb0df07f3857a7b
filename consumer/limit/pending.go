package limit

import (
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// maxCalls is how many calls and parts of bodies may wait to be stored. Further ones are refused.
	maxCalls = 1 << 14
	// maxOwnerCalls is how many of these one owner may have, once half of the places are taken.
	maxOwnerCalls = 1 << 11
	// maxCallBytes is how many bytes they may have together. maxOwnerCallBytes is how many those of one owner may have,
	// once half of that is taken. One message of any size is always allowed.
	maxCallBytes      = 64 << 20
	maxOwnerCallBytes = 8 << 20
)

// Pending counts the calls and parts that wait to be stored, and their bytes, by owner.
type Pending struct {
	mu  sync.Mutex
	all amount
	of  map[string]amount
}

// amount is a number of messages, and their bytes.
type amount struct{ n, bytes int }

// with is a with one more message of size bytes.
func (a amount) with(size int) amount { return amount{a.n + 1, a.bytes + size} }

// exceeds reports whether a is more than n messages or bytes. One message is always allowed.
func (a amount) exceeds(n, bytes int) bool { return a.n > n || a.n > 1 && a.bytes > bytes }

// Begin counts one more, of size bytes with its headers. It returns false when there are too many already.
func (p *Pending) Begin(owner string, size int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, own := p.all.with(size), p.of[owner].with(size)
	halfFull := all.exceeds(maxCalls/2, maxCallBytes/2)
	if all.exceeds(maxCalls, maxCallBytes) || halfFull && own.exceeds(maxOwnerCalls, maxOwnerCallBytes) &&
		!guard.RequestRates.Off() {
		return false
	}
	if p.of == nil {
		p.of = make(map[string]amount)
	}
	p.all, p.of[owner] = all, own
	return true
}

// End counts one less, of the same size.
func (p *Pending) End(owner string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = amount{p.all.n - 1, p.all.bytes - size}
	own := p.of[owner]
	if p.of[owner] = (amount{own.n - 1, own.bytes - size}); own.n == 1 {
		delete(p.of, owner)
	}
}

// Full returns why Begin refused.
func (p *Pending) Full(owner string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.of[owner]; own.n >= maxOwnerCalls || own.bytes >= maxOwnerCallBytes/2 {
		return fmt.Sprintf("%d calls and parts of bodies of owner %s, with %d bytes, wait to be stored: it may have no more", own.n, owner, own.bytes)
	}
	return "too many calls wait to be stored"
}
