package cells

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// hostileScript is a file of the hostile scripts of package isolates, as far as a cell needs it.
type hostileScript struct {
	name, code string
	outcomes   []string // how it may end: ok or a reason
	kind       events.Kind
	mode       workers.Mode
	events     int
	body       bool
	thread     bool // it costs its thread
}

func hostileScripts(t *testing.T) (list []hostileScript) {
	t.Helper()
	paths, err := filepath.Glob("../../../isolates/testdata/hostile_scripts/*/*.js")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		dir, file := filepath.Split(path)
		s := hostileScript{name: filepath.Base(dir) + "/" + file, code: string(text), kind: events.Fetch, events: 1}
		for line := range strings.Lines(s.code) {
			header, is := strings.CutPrefix(strings.TrimSpace(line), "// ")
			if !is {
				break
			}
			s.header(t, header)
		}
		if !strings.Contains(s.code, "__MANY__") { // isolates fills these in
			list = append(list, s)
		}
	}
	return list
}

func (s *hostileScript) header(t *testing.T, line string) {
	t.Helper()
	key, value, _ := strings.Cut(line, ": ")
	var err error
	switch {
	case key == "outcome":
		s.outcomes = strings.Split(value, ", ")
	case key == "kind" && value == "task":
		s.kind = events.Task
	case key == "events":
		s.events, err = strconv.Atoi(value)
	case key == "mode":
		s.mode = workers.Mode(value)
	case line == "body":
		s.body = true
	case line == "parks", line == "endless", line == "strays":
		s.thread = true
	}
	require.NoError(t, err, s.name)
}

// run runs the script's events in h, one after the other, as an owner of its own. It returns how they ended.
func (s *hostileScript) run(h *house) (ends []string) {
	owner := "hostile-" + strings.NewReplacer("/", "-", ".", "-").Replace(s.name)
	h.catalog.SetPolicy(owner, workers.Policy{WASM: true})
	h.catalog.Install(workers.Only(&workers.Worker{
		Owner: owner, Name: "w", Version: "1-x", Number: 1, Hash: s.name, Code: s.code, File: "w.js",
		Spec: workers.Spec{
			Mode: s.mode,
			Bindings: workers.Bindings{
				Queues: map[string]string{"JOBS": "jobs"}, KV: map[string]string{"KV": "space"},
			},
			Limits: workers.Limits{
				CPU: workers.Millis(200 * time.Millisecond), Wall: workers.Millis(2 * time.Second), HeapMB: 64,
			},
			Retries: workers.Retries{MaxAttempts: 1},
		},
	}))
	for range min(s.events, 5) {
		e := &lifecycle.Delivery{Event: events.Event{Kind: s.kind, Owner: owner, Worker: "w", ID: s.name,
			ReplyTo: "somewhere", Body: []byte(`{"a":1}`), Stored: time.Now()}, Runs: events.FirstRun}
		if s.kind == events.Fetch {
			e.Body, e.Request = nil, events.Request{Method: "GET", URL: "http://hostile.test/"}
		}
		if s.body {
			e.Method, e.Body = "POST", []byte(strings.Repeat("x", 1<<20))
		}
		end := "ok"
		if _, settled := h.wait(h.give(e)); settled.Outcome.Failure != nil {
			end = string(settled.Outcome.Failure.Reason)
		}
		ends = append(ends, end)
	}
	h.catalog.Remove(owner, "w")
	return ends
}

// The hostile scripts end in a cell as they do without one, and owners elsewhere do not notice. With the tag hostile
// all of them run, else a few.
func TestHostileScriptsInCells(t *testing.T) {
	t.Parallel()
	all := hostileScripts(t)
	if !everyHostileScript {
		seed := rand.Uint64()
		t.Log("seed", seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:20]
	}
	h := openHouse(t)
	h.classes["bystander"], h.classes["shared"] = "other", ""
	for _, owner := range []string{"bystander", "shared"} {
		h.install(owner, "w", echo)
	}
	var mu sync.Mutex
	ended := map[string]int{}
	places := make(chan struct{}, 2)
	var group sync.WaitGroup
	for _, s := range all {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			ends := s.run(h)
			mu.Lock()
			defer mu.Unlock()
			for _, end := range ends {
				ended[end]++
				// A busy machine ends what waits by its wall-clock limit, and a cell may die of what costs a thread.
				if allowed := append([]string{"timeout", "crash"}, s.outcomes...); !slices.Contains(allowed, end) {
					t.Errorf("%s ended with %s: it ends with one of %v", s.name, end, s.outcomes)
				}
				if end == "crash" {
					t.Logf("%s ended with crash; it costs a thread: %v", s.name, s.thread)
				}
			}
		})
		for _, owner := range []string{"bystander", "shared"} {
			reply, settled := h.run(owner, "w", "hello")
			require.Equal(t, lifecycle.Ack, settled.Outcome.Verdict, "%s beside %s: %s", owner, s.name, reply)
			require.Nil(t, settled.Outcome.Failure, "%s beside %s", owner, s.name)
		}
	}
	group.Wait()
	t.Logf("%d scripts ended: %v", len(all), ended)
	require.Empty(t, h.lies)
}
