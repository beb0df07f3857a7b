package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// maxLines is how many lines that a module writes while it is loaded are sent to who deploys it, and maxLine how long
// each is, in bytes.
const maxLines, maxLine = 50, 500

// checkLimits bound the check of a module for an owner.
var checkLimits = workers.Limits{CPU: workers.Millis(time.Second), Wall: workers.Millis(10 * time.Second), HeapMB: 256}

// Checker checks one module.
type Checker interface {
	deploy.Checker
	// Close ends the check. lost reports whether the module cost the process or the thread that loaded it.
	Close() (lost bool)
}

// moduleCheck checks one module for an owner. What the module writes is shown to the client that deploys it, and to no
// one else.
type moduleCheck struct {
	process   Process
	unlimited bool // the fleet's user deploys: the limits are those of the worker
	bans      *checkBans
	took      time.Duration

	mu    sync.Mutex
	lines []string
	more  bool // than are kept
}

// Check loads the module, with at most the limits of a check. The checker is used for this module only: whatever the
// module does ends with it.
func (c *moduleCheck) Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error) {
	bounded := *w
	if !c.unlimited {
		bounded.Limits = w.Limits.Within(checkLimits)
	}
	began := time.Now()
	if err := c.bans.refuse(w.Owner, w.Hash, began); err != nil {
		return workers.Handlers{}, err
	}
	defer func() { c.took += time.Since(began) }()
	checker := c.process.OpenChecker(c.log)
	defer func() {
		if checker.Close() {
			c.bans.cost(w.Owner, w.Hash, time.Now())
		}
	}()
	return checker.Check(ctx, &bounded)
}

// log takes a line of the module. Any goroutine may call it.
func (c *moduleCheck) log(l events.LogLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lines) >= maxLines {
		c.more = true
		return
	}
	text := cut(l.Text, maxLine)
	c.lines = append(c.lines, fmt.Sprintf("%s: %s/%s: %s", l.Level, l.Owner, l.Worker, text))
}

// cut returns at most that many bytes of a text, and "…" if it has more.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// output is what the module has written.
func (c *moduleCheck) output() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append([]string{}, c.lines...)
	if c.more {
		list = append(list, "…")
	}
	return list
}

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
