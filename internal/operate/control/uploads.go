package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

const (
	// maxUploads is how many deploys a process handles at once. An owner has one of them.
	maxUploads = 2
	// checkShare is the part of its time that an owner may have a process check modules, and checkBurst how much of that
	// it may have at once. So a module that loops while it is loaded costs its owner deploys, and a process a tenth of a
	// CPU.
	checkShare, checkBurst = 0.1, 20 * time.Second
	// filesShare and filesBurst are the same for storing files, objects and imported letters.
	filesShare, filesBurst = 0.25, 2 * time.Minute
	// maxLines is how many lines that a module writes while it is loaded are sent to who deploys it, and maxLine how long
	// each is, in bytes.
	maxLines, maxLine = 50, 500
)

// checkLimits bound the check of a module for an owner.
var checkLimits = workers.Limits{CPU: workers.Millis(time.Second), Wall: workers.Millis(10 * time.Second), HeapMB: 256}

// Checker checks one module.
type Checker interface {
	deploy.Checker
	// Close ends the check. lost reports whether the module cost the process or the thread that loaded it.
	Close() (lost bool)
}

// uploadKind says what uploads limits, in words for owners, and how much of its time an owner may have a process work.
type uploadKind struct {
	one, many, slow string
	share           float64
	burst           time.Duration
}

var (
	ofDeploys = uploadKind{"a deploy", "deploys", "modules of owner %s took too long to load", checkShare, checkBurst}
	ofFiles   = uploadKind{"an upload of files", "uploads of files", "files of owner %s took too long to store", filesShare,
		filesBurst}
	ofBodies = uploadKind{"an import or an object", "imports and objects", "imports and objects of owner %s took too long to store",
		filesShare, filesBurst}
)

// uploads limits the deploys that owners ask of a process, or other requests that have a body in parts.
type uploads struct {
	kind uploadKind     // this does not change
	time perowner.Rates // microseconds

	mu   sync.Mutex
	busy []string // owners that have one under way
}

func newUploads(of uploadKind) *uploads {
	return &uploads{kind: of, time: perowner.Rates{PerSecond: int(of.share * float64(time.Second.Microseconds())),
		Burst: int(of.burst.Microseconds())}}
}

// enter takes a slot for a deploy of an owner. Its error says why there is none.
func (u *uploads) enter(owner string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	owes := u.time.Owes(owner, now)
	switch {
	case slices.Contains(u.busy, owner):
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("owner %s has %s under way in this process: try again", owner,
			u.kind.one)}
	case owes > 0:
		return &Error{Code: http.StatusTooManyRequests, Text: fmt.Sprintf("rate: "+u.kind.slow+": try again in %s", owner,
			max(time.Second, owes.Round(time.Second)))}
	case len(u.busy) >= maxUploads:
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has too many %s of owners under way: try again",
			u.kind.many)}
	case !u.time.Room(owner, knownOwners, now):
		return &Error{Code: http.StatusServiceUnavailable, Text: fmt.Sprintf("this process has handled too many %s of owners just now: try again",
			u.kind.many)}
	}
	u.busy = append(u.busy, owner)
	return nil
}

// leave returns the slot, and charges the owner for the time that its module took.
func (u *uploads) leave(owner string, took time.Duration, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.busy, owner)
	u.busy = slices.Delete(u.busy, i, i+1)
	u.time.Charge(owner, int(min(took, u.kind.burst).Microseconds()), now)
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

// UploadedBody names a body that was stored in parts, as a body of its owner.
type UploadedBody struct {
	ID    string `json:"id"`
	Parts int    `json:"parts"`
	Bytes int    `json:"bytes"` // of all parts

	data []byte // of a request that this program handles
}

// InlineBody is a body in a request that this program handles.
func InlineBody(data []byte) UploadedBody {
	return UploadedBody{ID: inlineID, Parts: 1, Bytes: len(data), data: data}
}

// check checks the fields that reading does not check. most is how many bytes are allowed.
func (b UploadedBody) check(most int) error {
	switch {
	case b.Parts < 0 || b.Parts > maxBundleParts:
		return wrongField("body.parts", " is %d: it is 0 to %d", b.Parts, maxBundleParts)
	case b.Parts > 0 && events.CheckName("id of a body", b.ID) != nil:
		return wrongField("body.id", " %.80q: it is the id of a body that was stored in parts", b.ID)
	case b.Bytes < 0 || b.Bytes > most:
		return wrongField("body.bytes", " is %d: it is 0 to %d", b.Bytes, most)
	}
	return nil
}

// withBody reads a body of an owner and calls do with it. An owner has one such request at a time in a process, so that
// bodies in memory are few. The parts are removed, unless the request may be sent again: then do returns again, or an
// error of this process.
func withBody(ctx context.Context, s *Server, owner string, b UploadedBody,
	do func(data []byte) (again bool, err error)) error {
	if err := s.bodies.enter(owner, time.Now()); err != nil {
		return err
	}
	began := time.Now()
	defer func() { s.bodies.leave(owner, time.Since(began), time.Now()) }()
	data, err := readParts(ctx, s, owner, parts{"body", "body.bytes says", b.ID, b.Parts, b.data}, b.Bytes)
	again := false
	if err == nil {
		again, err = do(data)
	}
	if b.Parts > 0 && !again && !mayAskAgain(err) {
		dropParts(ctx, s, owner, b.ID) // nobody needs them any more
	}
	return err
}

// mayAskAgain reports whether the same request may succeed later.
func mayAskAgain(err error) bool {
	if err == nil {
		return false
	}
	switch codeOf(err) {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError:
		return true
	}
	return false
}
