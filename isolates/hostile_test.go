//go:build hostile

// The suite loses threads on purpose, keeps cores busy for minutes, and wants several GB: `make hostile` runs it alone.

package isolates

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

var (
	update = flag.Bool("update", false, "rewrite the table of hostile scripts in docs/limits.md")
	only   = flag.String("script", "", "run only the hostile scripts whose names match this expression")
)

// The limits of hostile workers, and what their neighbour may lose.
const (
	hostileCPU  = 200 * time.Millisecond
	hostileWall = 2 * time.Second
	hostileHeap = 64
	neighbour   = 250 * time.Millisecond // beyond the hostile worker's CPU limit
	noise       = 4                      // times that, on a machine that does other things
	rssSlack    = 192 << 20
)

// script is one file of testdata/hostile_scripts: what it does, how it may end, and the module.
type script struct {
	name, what, code string
	outcomes         []string // allowed: ok, cut, or a reason
	kind             events.Kind
	events           int  // how many one after the other
	parks, endless   bool // V8 may lose its thread, by a fatal error or because a builtin runs on
	cut, body        bool // waitUntil is cut short; the request has a body
}

func readScripts(t *testing.T) []script {
	t.Helper()
	paths, err := filepath.Glob("testdata/hostile_scripts/*/*.js")
	require.NoError(t, err)
	var list []script
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		name := strings.TrimSuffix(strings.TrimPrefix(path, "testdata/hostile_scripts/"), ".js")
		s := script{name: name, code: string(text), kind: events.Fetch, events: 1}
		for i, line := range strings.Split(s.code, "\n") {
			s.header(t, i, line)
		}
		require.NotEmpty(t, s.outcomes, "%s says how it may end", name)
		list = append(list, s)
	}
	return list
}

// header reads a line of a script's head.
func (s *script) header(t *testing.T, i int, line string) {
	t.Helper()
	key, value, _ := strings.Cut(strings.TrimPrefix(line, "// "), ": ")
	switch {
	case i == 0:
		s.what = strings.TrimPrefix(line, "// ")
	case !strings.HasPrefix(line, "// "):
	case key == "outcome":
		s.outcomes = strings.Split(value, ", ")
	case key == "kind" && value == "task":
		s.kind = events.Task
	case key == "events":
		n, err := strconv.Atoi(value)
		require.NoError(t, err)
		s.events = n
	case key == "parks":
		s.parks = true
	case key == "endless":
		s.endless = true
	case key == "cut":
		s.cut = true
	case key == "body":
		s.body = true
	}
}

func (s *script) event() *events.Event {
	e := fetch("GET", "http://hostile.test/", "")
	switch {
	case s.kind == events.Task:
		e = task(`{"a":1}`)
	case s.body:
		e = fetch("POST", "http://hostile.test/", strings.Repeat("x", 1<<20))
	}
	return e
}

func (s *script) worker() *events.Worker {
	w := worker("w", s.code)
	w.Owner = "hostile-" + strings.ReplaceAll(s.name, "/", "-")
	w.Queues = map[string]string{"JOBS": "jobs"}
	w.Limits = events.Limits{CPU: events.Millis(hostileCPU), Wall: events.Millis(hostileWall), HeapMB: hostileHeap}
	return w
}

// arena is a bench whose events may be meant for one thread: those of the owner "thread-N".
type arena struct{ *bench }

func (a arena) Next(thread, free int) []*events.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	var batch, rest []*events.Attempt
	for _, x := range a.next {
		pin, pinned := strings.CutPrefix(x.Event.Owner, "thread-")
		if len(batch) < free && (!pinned || pin == strconv.Itoa(thread)) {
			batch = append(batch, x)
		} else {
			rest = append(rest, x)
		}
	}
	a.next = rest
	return batch
}

func newArena(t *testing.T, change func(*Config)) arena {
	t.Helper()
	a := arena{&bench{t: t, seen: map[*events.Attempt]*outcome{}}}
	cfg := DefaultConfig(2)
	change(&cfg)
	var err error
	a.pool, err = New(cfg, a, a, prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, a.pool.Open())
	return a
}

// forgetOutcomes drops what has ended, so that replies do not count as the pool's memory.
func (a arena) forgetOutcomes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, o := range a.seen {
		if o.end != nil {
			delete(a.seen, k)
		}
	}
	a.logs, a.sent = nil, nil
}

func good(owner string) *events.Worker {
	w := worker("good", `export default { async fetch(r) { const x = await r.json(); await new Promise(f => setTimeout(f, 1)); return Response.json({ n: x.n + 1 }) } }`)
	w.Owner = owner
	return w
}

// check runs a good event, again when its thread was lost, and returns how long that took.
func (a arena) check(w *events.Worker, pin string) (time.Duration, error) {
	start := time.Now()
	for {
		e := fetch("POST", "http://good.test/", `{"n":1}`)
		if pin != "" {
			e.Owner = pin
		}
		o := a.start(w, e)
		select {
		case <-o.ended:
		case <-time.After(patience):
			return 0, fmt.Errorf("an event of %s does not end", w.Owner)
		}
		switch {
		case o.end.Interrupted:
			continue
		case o.end.Failure != nil:
			return 0, fmt.Errorf("an event of %s failed: %w", w.Owner, o.end.Failure)
		case string(o.reply.Body) != `{"n":2}`:
			return 0, fmt.Errorf("an event of %s answered %q", w.Owner, o.reply.Body)
		}
		return time.Since(start), nil
	}
}

// watchNeighbour runs good events one after the other until stop is called, which returns the longest wait.
func (a arena) watchNeighbour() (stop func() (time.Duration, error)) {
	var worst time.Duration
	var failed error
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		w := good("neighbour")
		pace := time.NewTicker(3 * time.Millisecond)
		defer pace.Stop()
		for failed == nil {
			var took time.Duration
			took, failed = a.check(w, "")
			worst = max(worst, took)
			select {
			case <-done:
				return
			case <-pace.C:
			}
		}
	})
	return func() (time.Duration, error) { close(done); running.Wait(); return worst, failed }
}

// outcomeOf is how an attempt ended, in a word.
func outcomeOf(s *script, o *outcome) string {
	switch {
	case o.end.Interrupted:
		return "interrupted"
	case o.end.Failure != nil:
		return string(o.end.Failure.Reason)
	case o.reply == nil:
		return "no reply"
	case s.kind == events.Fetch && string(o.reply.Body) != "ok":
		return fmt.Sprintf("reply %d %.200q", o.reply.Status, o.reply.Body)
	}
	return "ok"
}

// ordeal is what one script did.
type ordeal struct {
	took, neighbour time.Duration
	parked, strayed int
	outcomes        []string
}

func (a arena) suffer(t *testing.T, s *script) ordeal {
	t.Helper()
	parked, strayed := a.pool.parked.Load(), a.pool.strayed.Load()
	stop := a.watchNeighbour()
	var r ordeal
	w, start := s.worker(), time.Now()
	for range s.events {
		o := a.start(w, s.event())
		o.wait(t, o.ended)
		r.outcomes = append(r.outcomes, outcomeOf(s, o))
		if f := o.end.Failure; f != nil {
			require.NotContains(t, f.Message+f.Stack, runtimePrefix)
			t.Logf("%.300s", f.Message)
		}
	}
	r.took = time.Since(start)
	var err error
	r.neighbour, err = stop()
	require.NoError(t, err)
	for i := range a.pool.threads {
		_, err := a.check(good("after"), fmt.Sprintf("thread-%d", i))
		require.NoError(t, err)
	}
	r.parked, r.strayed = int(a.pool.parked.Load()-parked), int(a.pool.strayed.Load()-strayed)
	return r
}

// TestHostile runs every hostile script beside a neighbour that must hardly notice.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	scripts := readScripts(t)
	require.Greater(t, len(scripts), 60)
	a := newArena(t, func(c *Config) { c.MaxParked, c.MaxIsolates = 64, 8 })
	for i := range a.pool.threads {
		_, err := a.check(good("before"), fmt.Sprintf("thread-%d", i))
		require.NoError(t, err)
	}
	before := rss()
	var worst, longest time.Duration
	var worstOf, longestOf string
	var parked, strayed []string
	endless := 0
	for _, s := range scripts {
		if match, _ := regexp.MatchString(*only, s.name); !match {
			continue
		}
		ok := t.Run(s.name, func(t *testing.T) {
			r := a.suffer(t, &s)
			for range r.parked {
				parked = append(parked, s.name)
			}
			for range r.strayed {
				strayed = append(strayed, s.name)
			}
			if s.endless {
				endless += s.events
			}
			if r.neighbour > worst {
				worst, worstOf = r.neighbour, s.name
			}
			if r.took > longest {
				longest, longestOf = r.took, s.name
			}
			t.Logf("%s: %v in %v; the neighbour waited %v at most; RSS %d MB", s.name, r.outcomes, r.took, r.neighbour, rss()>>20)
			s.judge(t, a, r)
		})
		a.forgetOutcomes()
		if !ok && t.Failed() && a.pool.Healthy() != nil {
			t.Fatal("too many threads are parked")
		}
	}
	t.Logf("%d scripts; %d parked: %v; %d strayed: %v", len(scripts), len(parked), parked, len(strayed), strayed)
	require.Eventually(t, func() bool { return a.away() <= endless }, 4*patience, 100*time.Millisecond)
	t.Logf("%d threads never come back", a.away())
	t.Logf("the neighbour waited %v at most (%s); the longest took %v (%s)", worst, worstOf, longest, longestOf)
	t.Logf("RSS before %d MB, at the end %d MB", before>>20, rss()>>20)
	a.pool.Close()
	debug.FreeOSMemory()
	after := rss()
	t.Logf("RSS after the pool was closed %d MB", after>>20)
	if len(parked) == 0 && a.away() == 0 { // the heap of a thread that is lost is lost
		require.Less(t, after, before+rssSlack)
	}
	if *only == "" && !t.Failed() {
		checkTable(t, scripts)
	}
}

// away is how many strayed threads are still in V8.
func (a arena) away() int { return int(a.pool.strayed.Load() - a.pool.back.Load()) }

// judge compares what a script did with what it may do.
func (s *script) judge(t *testing.T, a arena, r ordeal) {
	t.Helper()
	for _, o := range r.outcomes {
		require.Contains(t, s.outcomes, o)
	}
	require.True(t, r.parked == 0 || s.parks, "V8 lost %d threads", r.parked)
	limit := hostileCPU
	if !strings.Contains(s.code, "export default") {
		limit = loadCPU
	}
	require.Less(t, r.neighbour, limit+noise*neighbour, "a neighbour waited too long")
	if s.cut {
		require.True(t, slices.ContainsFunc(a.lines(), func(l string) bool { return strings.Contains(l, "cut short") }), "%v", a.lines())
	}
}

// rss is the memory that the process has in RAM, bytes.
func rss() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}

// The lines of docs/limits.md between which the table of this suite stands.
const (
	tableBegin = "<!-- hostile scripts: written by go test ./isolates -run TestHostile -update -->"
	tableEnd   = "<!-- end of hostile scripts -->"
)

// checkTable compares the table in docs/limits.md with the scripts, or rewrites it.
func checkTable(t *testing.T, scripts []script) {
	t.Helper()
	const page = "../docs/limits.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := bytes.Cut(text, []byte(tableBegin+"\n"))
	require.True(t, ok, "%s has the line %s", page, tableBegin)
	table, tail, ok := bytes.Cut(rest, []byte(tableEnd))
	require.True(t, ok, "%s has the line %s", page, tableEnd)
	want := renderTable(scripts)
	if *update {
		require.NoError(t, os.WriteFile(page, slices.Concat(head, []byte(tableBegin+"\n"+want+tableEnd), tail), 0o644))
		return
	}
	require.Equal(t, want, string(table), "the table is old: run the test with -update")
}

func renderTable(scripts []script) string {
	var b strings.Builder
	b.WriteString("\n| script | what it does | how it ends |\n|---|---|---|\n")
	for _, s := range scripts {
		ends := strings.Join(s.outcomes, " or ")
		if s.cut {
			ends += ", waitUntil cut short"
		}
		if s.parks || s.endless {
			ends += ", may cost a thread"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.name, strings.NewReplacer("|", "\\|", "*", "\\*", "<", "&lt;").Replace(s.what), ends)
	}
	b.WriteString("\n")
	return b.String()
}
