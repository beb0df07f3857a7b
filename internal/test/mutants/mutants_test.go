//go:build mutants

package mutants_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the directory of the module.
const root = "../../.."

const (
	cellsRoom = "internal/process/cells"
	wireRoom  = "internal/process/cells/wire"
	callsRoom = "internal/process/cells/calls"
)

// rooms are packages and their files that check what a cell says.
var rooms = []struct {
	dir, name string
	files     []string // each with a function, if it is only that one
	tests     string   // that show it
}{
	{wireRoom, "wire", []string{"codec.go", "conn.go frames", "report.go"}, "."},
	{callsRoom, "calls", []string{"budget.go", "frame.go", "head.go", "running.go", "server.go", "servercalls.go",
		"serverdial.go", "serverhttp.go"}, "."},
	{cellsRoom, "cells", []string{"caller.go", "assigned.go", "receive.go", "stats.go poolStats", "tell.go"},
		"Lies|LateWords|Wrong|SpeakAtOnce|Flood|MayBeLong|Numbers|HaveEnded"},
}

// untried are conditions that no test misses, by file and function, and why.
var untried = []struct{ of, why string }{
	{`report.go oneLine`, "is of what a cell sends"},
	{`frame.go endOf|head.go finish|server.go reply|serverhttp.go (begin|Write)|serverdial.go copyFrom`,
		"is of what the broker sends"},
	{`head.go list: min\(n, 64\), the first`, "saves memory only"},
	{`server.go serve: r.ProtoMajor`, "the connection speaks only HTTP/2"},
	{`(server.go read|serverdial.go (dial|socket|take|write)|serverhttp.go answer).*: (err [!=]= nil|!errors.Is|!isEnd)`,
		"nobody waits for an answer any more"},
	{`servercalls.go call: kind == `, "a service has no budget of calls either"},
	{`servercalls.go enqueue: x.count\(maxHead\)`, "there are no more tasks than bytes"},
	{`serverdial.go (take|write): min`, "a message passes in pieces, and each has a time"},
	{`serverhttp.go request: x.err`, "what follows is malformed too"},
	{`receive.go (grant: max|takeNext: err|takeCharge: err|takeAway: err)`, "Receive ends the cell as well, or the broker grants"},
	{`tell.go take\w+: (err|r.Err\(\)) != nil|serverhttp.go service.*: (x.)?err != nil`, "the same is refused a step later"},
	{`tell.go takeSpan: !c.output`, "lines have the same bound, and a test"},
}

// why says why no test need miss a condition; "" = one should.
func (m mutant) why() string {
	for _, u := range untried {
		if regexp.MustCompile(u.of).MatchString(m.name) {
			return u.why
		}
	}
	return ""
}

var match = flag.String("match", "", "try only checks whose name this regexp matches")

// TestChecksAreTried takes each check of what a cell says out of its broker, one after the other. A test of the broker
// fails then.
func TestChecksAreTried(t *testing.T) {
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	dir, replace := t.TempDir(), map[string]string{}
	var all []mutant
	put := func(of string, text []byte) {
		path := filepath.Join(dir, strings.ReplaceAll(of, "/", "-"))
		require.NoError(t, os.WriteFile(path, text, 0o600))
		replace[filepath.Join(module, of)] = path
	}
	for _, r := range rooms {
		for _, name := range r.files {
			file, function, _ := strings.Cut(name, " ")
			path := filepath.Join(r.dir, file)
			put(path, instrument(t, r.dir, filepath.Join(module, path), function, &all))
		}
		put(filepath.Join(r.dir, "mutants.go"), fmt.Appendf(nil, switches, r.name))
	}
	harness, err := os.ReadFile(filepath.Join(module, cellsRoom, "harness_test.go"))
	require.NoError(t, err)
	require.Contains(t, string(harness), "patience = 5 * time.Minute")
	put(filepath.Join(cellsRoom, "harness_test.go"), // what does not come without a check need not be waited for
		bytes.Replace(harness, []byte("patience = 5 * time.Minute"), []byte("patience = 5 * time.Second"), 1))
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, overlay, 0o600))
	args := []string{"test", "-c", "-overlay", list, "-o", dir + "/"}
	for _, r := range rooms {
		args = append(args, "./"+r.dir)
	}
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Dir = module
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	require.Empty(t, tries(t, module, dir, cellsRoom, 0), "the tests fail with all checks")
	only := regexp.MustCompile(*match)
	red := 0
	for i, m := range all {
		if !only.MatchString(m.room + "/" + m.name) {
			continue
		}
		test := tries(t, module, dir, m.room, i+1)
		switch {
		case test != "":
			red++
			t.Logf("red %d %s/%s: %s", i+1, m.room, m.name, test)
		case m.why() != "":
			t.Logf("green %d %s/%s: %s", i+1, m.room, m.name, m.why())
		default:
			t.Errorf("GREEN %d %s/%s", i+1, m.room, m.name)
		}
	}
	t.Logf("%d conditions and bounds, a test misses %d of them", len(all), red)
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// tries runs the tests without a check, those of its room first, and returns the first that fails. 0 = with all checks.
func tries(t *testing.T, module, dir, room string, number int) (test string) {
	for _, first := range []bool{true, false} {
		for _, r := range rooms {
			if (r.dir == room) != first || !first && (r.dir == callsRoom || room == callsRoom) && number > 0 {
				continue // nothing of the calls is in the other rooms
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			cmd := exec.CommandContext(ctx, filepath.Join(dir, r.name+".test"), "-test.failfast", "-test.timeout", "30s",
				"-test.run", r.tests)
			cmd.Dir = t.TempDir() // tests may leave what failed
			cmd.Env = append(os.Environ(), fmt.Sprint("MUTANT=", number))
			out, err := cmd.CombinedOutput()
			cancel()
			if err != nil {
				if m := failed.FindSubmatch(out); m != nil {
					return string(m[1])
				}
				return "a panic, or no end"
			}
		}
	}
	return ""
}
