package isolates

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The limits of hostile workers.
const (
	hostileCPU  = 200 * time.Millisecond
	hostileWall = 2 * time.Second
	hostileHeap = 64 // MB
)

// itself is the kind of the scripts that no limit ends.
const itself = "itself"

// script is one file of testdata/hostile_scripts: its description, how it may end, and the module.
type script struct {
	name, what, code string
	outcomes         []string // allowed, the usual one first: ok or a reason
	kind             events.Kind
	mode             workers.Mode // "" is pinned
	events           int          // how many events run one after the other
	workers          int          // number of workers with its code, each with an event at the same time
	parks            bool         // V8 gives up its thread because of a fatal error
	endless          bool         // a builtin that does not check for termination keeps its thread
	strays           bool         // the same, but the builtin ends
	load             bool         // it ends while its module is loaded, which has its own limits
	cut, body        bool         // waitUntil is cut short; the request has a body
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
		s := script{name: name, code: string(text), kind: events.Fetch, events: 1, workers: 1}
		for i, line := range strings.Split(s.code, "\n") {
			if !strings.HasPrefix(line, "// ") {
				break
			}
			s.header(t, i, strings.TrimPrefix(line, "// "))
		}
		require.NotEmpty(t, s.outcomes, "%s says how it may end", name)
		list = append(list, s)
	}
	return list
}

// header reads a line of a script's head.
func (s *script) header(t *testing.T, i int, line string) {
	t.Helper()
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case i == 0:
		s.what = line
	case key == "outcome":
		s.outcomes = strings.Split(value, ", ")
	case key == "kind" && value == "task":
		s.kind = events.Task
	case key == "events":
		n, err := strconv.Atoi(value)
		require.NoError(t, err)
		s.events = n
	case key == "workers":
		n, err := strconv.Atoi(value)
		require.NoError(t, err)
		s.workers = n
	case key == "many":
		n, template, _ := strings.Cut(value, " ")
		times, err := strconv.Atoi(n)
		require.NoError(t, err)
		s.code = strings.ReplaceAll(s.code, "__MANY__", repeated(times, template))
	case key == "mode":
		s.mode = workers.Mode(value)
	case line == "parks":
		s.parks = true
	case line == "endless":
		s.endless = true
	case line == "strays":
		s.strays = true
	case line == "load":
		s.load = true
	case line == "cut":
		s.cut = true
	case line == "body":
		s.body = true
	default:
		t.Fatalf("%s: line %d: %q is no header", s.name, i+1, line)
	}
}

// repeated returns the template repeated times, with its $i counting from 0.
func repeated(times int, template string) string {
	before, after, counts := strings.Cut(template, "$i")
	if !counts {
		return strings.Repeat(template, times)
	}
	var b strings.Builder
	for i := range times {
		b.WriteString(before)
		b.WriteString(strconv.Itoa(i))
		b.WriteString(strings.ReplaceAll(after, "$i", strconv.Itoa(i)))
	}
	return b.String()
}

func (s *script) area() string { return filepath.Dir(s.name) }

// apart reports whether the script takes a thread from its process, and so needs its own process.
func (s *script) apart() bool { return s.parks || s.endless || s.strays }

func (s *script) event() *lifecycle.Delivery {
	e := fetch("GET", "http://hostile.test/", "")
	switch {
	case s.kind == events.Task:
		e = task(`{"a":1}`)
	case s.body:
		e = fetch("POST", "http://hostile.test/", strings.Repeat("x", 1<<20))
	}
	return e
}

func (s *script) worker() *workers.Worker {
	w := worker("w", s.code)
	w.Owner = "hostile-" + strings.ReplaceAll(s.name, "/", "-")
	w.Mode = s.mode
	w.Queues, w.KV = map[string]string{"JOBS": "jobs"}, map[string]string{"KV": "space"}
	wall := patience // on a busy machine every script may need more than hostileWall
	if s.cut || slices.Contains(s.outcomes, string(events.ReasonTimeout)) {
		wall = hostileWall
	}
	w.Limits = workers.Limits{CPU: workers.Millis(hostileCPU), Wall: workers.Millis(wall), HeapMB: hostileHeap}
	return w
}

// sample returns the scripts for the test without the tag: a third of those that end by themselves and, from each of a
// few areas, the first one that is ended by a limit, others in each run; and the first one that is ended by each limit.
// From the scripts that cost a thread it takes one of each kind.
func sample(t *testing.T, all []script) []script {
	t.Helper()
	var list []script
	seen := map[string]bool{} // and areas that are not drawn, of which none is needed
	for _, s := range all {
		seen[s.area()] = true
	}
	for _, area := range sampled(t, slices.Sorted(maps.Keys(seen)), len(seen)/5) {
		delete(seen, area)
	}
	seen[itself] = true // these are drawn one by one
	var tame []string
	for _, s := range all {
		if s.kinds()[0] == itself {
			tame = append(tame, s.name)
		}
	}
	tame = sampled(t, tame, len(tame)/3)
	for _, s := range all {
		kinds := s.kinds()
		if slices.Contains(tame, s.name) || slices.ContainsFunc(kinds, func(k string) bool { return !seen[k] }) {
			list = append(list, s)
		}
		for _, k := range kinds {
			seen[k] = true
		}
	}
	return list
}

// kinds are the kinds of endings that the script is an example of.
func (s *script) kinds() []string {
	switch {
	case s.parks:
		return []string{"parks"}
	case s.endless:
		return []string{"endless"}
	case slices.ContainsFunc(s.outcomes, func(o string) bool { return o != "ok" && o != "exception" }):
		return []string{s.area(), s.outcomes[0]}
	case s.strays:
		return []string{"strays"}
	case s.cut:
		return []string{"cut"}
	}
	return []string{itself}
}
