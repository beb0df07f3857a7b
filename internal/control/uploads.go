package control

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// maxUploads is how many deploys a process handles at once. An owner has one of them.
	maxUploads = 2
	// checkShare is the part of its time that an owner may have a process check modules, and checkBurst how much of that
	// it may have at once. So a module that loops while it is loaded costs its owner deploys, and a process a tenth of a
	// CPU.
	checkShare, checkBurst = 0.1, 20 * time.Second
	// filesShare and filesBurst are the same for compressing and storing files.
	filesShare, filesBurst = 0.25, 2 * time.Minute
	// maxLines is how many lines that a module writes while it is loaded are sent to who deploys it, and maxLine how long
	// each is, in bytes.
	maxLines, maxLine = 50, 500
)

// checkLimits bound the check of a module for an owner.
var checkLimits = events.Limits{CPU: events.Millis(time.Second), Wall: events.Millis(10 * time.Second), HeapMB: 256}

// Checker checks one module.
type Checker interface {
	deploy.Checker
	Close()
}

// uploads limits the deploys that owners ask of a process, or their uploads of files.
type uploads struct {
	files bool // uploads of files; this does not change

	mu     sync.Mutex
	busy   int
	owners map[string]*uploadUse
}

// uploadUse is what one owner asks.
type uploadUse struct {
	busy   bool
	checks *rate.Limiter // of milliseconds
}

// enter takes a slot for a deploy of an owner. Its error says why there is none.
func (u *uploads) enter(owner string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.owners[owner]
	switch {
	case of != nil && of.busy:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("owner %s has %s under way in this process: try again", owner, u.noun("a deploy", "an upload of files"))}
	case of != nil && of.checks.TokensAt(now) < 0:
		return &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf("rate: %s of owner %s took too long to %s: try again in %s", u.noun("modules", "files"), owner, u.noun("load", "store"), of.until(now))}
	case u.busy >= maxUploads:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has too many %s of owners under way: try again", u.noun("deploys", "uploads of files"))}
	}
	if of == nil {
		if u.forget(now); len(u.owners) >= knownDoors {
			return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has handled too many %s of owners just now: try again", u.noun("deploys", "uploads of files"))}
		}
		share, burst := u.time()
		of = &uploadUse{checks: rate.NewLimiter(rate.Limit(share*1000), int(burst.Milliseconds()))}
		if u.owners == nil {
			u.owners = map[string]*uploadUse{}
		}
		u.owners[owner] = of
	}
	of.busy = true
	u.busy++
	return nil
}

// leave returns the slot, and charges the owner for the time that its module took.
func (u *uploads) leave(owner string, took time.Duration, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.owners[owner]
	of.busy = false
	u.busy--
	_, burst := u.time()
	of.checks.ReserveN(now, int(min(took, burst).Milliseconds()))
}

func (u *uploads) time() (share float64, burst time.Duration) {
	if u.files {
		return filesShare, filesBurst
	}
	return checkShare, checkBurst
}

func (u *uploads) noun(deploy, files string) string {
	if u.files {
		return files
	}
	return deploy
}

// until is how long the owner waits for its next deploy.
func (of *uploadUse) until(now time.Time) time.Duration {
	return max(time.Second, time.Duration(-of.checks.TokensAt(now)/float64(of.checks.Limit())*float64(time.Second)).Round(time.Second))
}

// forget removes owners that have used nothing. Others become so within minutes.
func (u *uploads) forget(now time.Time) {
	maps.DeleteFunc(u.owners, func(_ string, of *uploadUse) bool {
		return !of.busy && of.checks.TokensAt(now) >= float64(of.checks.Burst())
	})
}

// moduleCheck checks one module for an owner. What the module writes is told to who deploys it, and to nobody else.
type moduleCheck struct {
	process Process
	took    time.Duration

	mu    sync.Mutex
	lines []string
	more  bool // than are kept
}

// Check loads the module, with at most the limits of a check. The checker is used for this module only: whatever the
// module does ends with it.
func (c *moduleCheck) Check(ctx context.Context, w *events.Worker) (events.Handlers, error) {
	bounded := *w
	bounded.Limits = w.Limits.Within(checkLimits)
	began := time.Now()
	defer func() { c.took += time.Since(began) }()
	checker, err := c.process.OpenChecker(c.log)
	if err != nil {
		return events.Handlers{}, err
	}
	defer checker.Close()
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
	text := l.Text
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	c.lines = append(c.lines, fmt.Sprintf("%s: %s/%s: %s", l.Level, l.Owner, l.Worker, text))
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
