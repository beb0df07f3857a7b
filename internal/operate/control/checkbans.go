package control

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Modules and owners whose checks cost processes are refused, as workers are whose runs cost threads.
const (
	firstCheckBan   = time.Minute // doubles each further time
	longestCheckBan = time.Hour
	// checkBanKept is how long a ban counts after its end.
	checkBanKept  = 2 * longestCheckBan
	mostCheckBans = 10_000
)

// checkBans are the modules and owners that are refused. Any goroutine may use it.
type checkBans struct {
	mu sync.Mutex
	of map[checkBanned]checkBan
}

// checkBanned names a module of an owner by its hash, or with hash "" an owner.
type checkBanned struct{ owner, hash string }

type checkBan struct {
	times int
	until time.Time
}

// refuse returns why a module is not checked now, or nil.
func (b *checkBans) refuse(owner, hash string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range [...]checkBanned{{owner, hash}, {owner: owner}} {
		x := b.of[key]
		if !now.Before(x.until) {
			continue
		}
		text := "this module has ended processes that loaded it, %d times lately: it is refused for %s more"
		if key.hash == "" {
			text = "modules of owner " + owner + " have ended processes that loaded them, %d times lately: they are refused for %s more"
		}
		return &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf(text, x.times, x.until.Sub(now).Round(time.Second))}
	}
	return nil
}

// cost notes that the check of a module cost a process. From the second time on, all modules of the owner are refused.
func (b *checkBans) cost(owner, hash string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[checkBanned]checkBan{}
	}
	for key, x := range b.of {
		if now.Sub(x.until) > checkBanKept || len(b.of) >= mostCheckBans && !x.until.After(now) {
			delete(b.of, key)
		}
	}
	for key, free := range map[checkBanned]int{{owner, hash}: 0, {owner: owner}: 1} {
		x := b.of[key]
		if now.Sub(x.until) > checkBanKept {
			x = checkBan{}
		}
		if x.times++; x.times > free {
			x.until = now.Add(min(firstCheckBan<<min(x.times-free-1, 16), longestCheckBan))
		} else {
			x.until = now
		}
		if _, known := b.of[key]; known || len(b.of) < mostCheckBans {
			b.of[key] = x
		}
	}
}
