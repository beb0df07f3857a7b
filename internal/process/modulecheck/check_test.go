package modulecheck

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/isolates"
)

func TestMain(m *testing.M) {
	BeChild()
	os.Exit(m.Run())
}

// lines keeps what modules write.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) log(line events.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line.Level+" "+line.Text)
}

func worker(code string) *workers.Worker {
	return &workers.Worker{Owner: "acme", Name: "w", Version: "1-test", Number: 1, Hash: code, Code: code, File: "w.js"}
}

// inBoth runs a test with processes, also of another process and confined, and with threads.
func inBoth(t *testing.T, f func(t *testing.T, c *Checks)) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	for name, enter := range map[string]func() error{
		"remote": nil, "confined": func() error { return confine.Plan{Executable: self}.Enter().Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, &Checks{Remote: remote(t, &spawn.Starter{Executable: self, Enter: enter})})
		})
	}
	for name, path := range map[string]string{"process": self, "thread": "", "no process": "/nonexistent"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, &Checks{Executable: path})
		})
	}
}

// remote serves a Starter until the test ends.
func remote(t *testing.T, s *spawn.Starter) *spawn.Spawner {
	t.Helper()
	ours, theirs, err := spawn.Pair()
	require.NoError(t, err)
	r, err := spawn.OpenRemote(theirs)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() { defer close(served); s.Serve(ours) }()
	t.Cleanup(func() {
		r.Close()
		<-served
	})
	return r
}

// A process that another one has started ends when its user ends it, or is gone, and costs what it costs.
func TestRemoteProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	s := &spawn.Starter{Executable: self, Enter: func() error { return confine.Plan{Executable: self}.Enter().Err() }}
	checks := &Checks{Remote: remote(t, s)}
	for _, code := range []string{`for (;;) console.log("x".repeat(8000))`, `[].indexOf.call({ length: 2 ** 53 - 1 }, 1)`} {
		check := checks.Open((&lines{}).log)
		_, err := check.Check(t.Context(), worker(code))
		require.Error(t, err)
		lost, inThread := check.Close()
		require.True(t, lost || strings.Contains(code, "console"), "its CPU time may end before its output")
		require.False(t, inThread)
	}
	check := checks.Open((&lines{}).log)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = check.Check(ctx, worker(`export default { task() {} }`))
	require.ErrorIs(t, err, context.Canceled)

	// One that is killed.
	p, err := check.start()
	require.NoError(t, err)
	p.Kill()
	_, err = p.check(t.Context(), check, worker(`export default { task() {} }`))
	var f *events.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, events.ReasonCrash, f.Reason)

	// Where nothing can be started, a thread checks.
	broken := &Checks{Remote: remote(t, &spawn.Starter{Executable: "/nonexistent"})}
	check = broken.Open((&lines{}).log)
	has, err := check.Check(t.Context(), worker(`export default { task() {} }`))
	require.NoError(t, err)
	require.Equal(t, []events.Kind{events.Task}, has.Kinds)
	_, inThread := check.Close()
	require.True(t, inThread)
}

// A process and a thread find out the same.
func TestCheck(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, c *Checks) {
		l := &lines{}
		for code, want := range map[string]workers.Handlers{
			`console.log("loads"); export default { fetch() {}, queue() {} }`:                                           {Kinds: []events.Kind{events.Fetch}, Queue: true},
			`export default { task() {}, scheduled() {}, email() {} }`:                                                  {Kinds: []events.Kind{events.Task, events.Scheduled}},
			`import { WorkerEntrypoint } from "cloudflare:workers"; export class A extends WorkerEntrypoint { f() {} }`: {Entrypoints: true},
		} {
			check := c.Open(l.log)
			has, err := check.Check(t.Context(), worker(code))
			require.NoError(t, err)
			require.Equal(t, want, has)
			lost, _ := check.Close()
			require.False(t, lost)
		}
		l.mu.Lock()
		require.Contains(t, l.text, "info loads")
		require.Contains(t, strings.Join(l.text, "\n"), "warn nothing calls email()")
		l.mu.Unlock()
		for code, want := range map[string]string{
			"\nthrow new TypeError('no')": "exception: TypeError: no",
			"export default {}":           "no-handler: w.js has no handler",
			"for (;;);":                   "(cpu: CPU time limit of 1s|timeout: wall-clock limit of 10s), while the module was loaded",
		} {
			check := c.Open(l.log)
			_, err := check.Check(t.Context(), worker(code))
			var f *events.Failure
			require.ErrorAs(t, err, &f)
			require.Regexp(t, want, f.Error())
			if strings.Contains(code, "TypeError") {
				require.Contains(t, f.Stack, "w.js:2:7")
			}
			lost, _ := check.Close()
			require.False(t, lost, code)
		}
	})
}

// A process has no environment, and what a module costs ends with it.
func TestProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	checks := &Checks{Executable: self}
	check := checks.Open((&lines{}).log)
	p, err := check.start()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID()))
		return err == nil && string(environ) == spawn.CheckVariable+"=yes\x00"
	}, spawn.CheckTime, 1e6)
	// until its CPU time or output ends
	_, err = p.check(t.Context(), check, worker(`for (;;) console.log("x".repeat(8000))`))
	require.Error(t, err)

	require.NoFileExists(t, fmt.Sprintf("/proc/%d/environ", p.PID()))

	check = checks.Open((&lines{}).log)
	_, err = check.Check(t.Context(), worker(`[].indexOf.call({ length: 2 ** 53 - 1 }, 1)`))
	var f *events.Failure
	require.ErrorAs(t, err, &f)
	lost, inThread := check.Close()
	require.True(t, lost)
	require.False(t, inThread)

	// The client's end costs the owner nothing.
	check = checks.Open((&lines{}).log)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = check.Check(ctx, worker(`export default { task() {} }`))
	require.ErrorIs(t, err, context.Canceled)
	lost, _ = check.Close()
	require.False(t, lost)

	// Nor does a machine that has no time for it.
	check = checks.Open((&lines{}).log)
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = check.Check(ctx, worker(`export default { task() {} }`))
	require.True(t, errors.As(err, &f))
	require.Equal(t, events.ReasonTimeout, f.Reason)
	lost, _ = check.Close()
	require.False(t, lost)

	// A process that is killed is the module's fault: nothing else is in it.
	check = checks.Open((&lines{}).log)
	p, err = check.start()
	require.NoError(t, err)
	p.Kill()
	_, err = p.check(t.Context(), check, worker(`export default { task() {} }`))
	require.True(t, errors.As(err, &f))
	require.Equal(t, events.ReasonCrash, f.Reason)
	lost, _ = check.Close()
	require.True(t, lost)
}

// The process of a check starts V8 with the compilers of the owner, and no more than those of the fleet.
func TestProcessHasTheOwnersCompilers(t *testing.T) {
	t.Parallel()
	c := &Checks{CheckConfig: isolates.CheckConfig{Compilers: workers.CompilersBaseline}}
	require.Equal(t, workers.Policy{Compilers: workers.CompilersBaseline, WASM: true}, c.policy("acme"))
	c.PolicyOf = func(owner string) workers.Policy {
		return map[string]workers.Policy{"acme": {Compilers: workers.CompilersFull}}[owner]
	}
	require.Equal(t, workers.Policy{Compilers: workers.CompilersBaseline}, c.policy("acme"))
	baseline := workers.Policy{Compilers: workers.CompilersBaseline}
	c.Compilers, c.PolicyOf = "", func(string) workers.Policy { return baseline }
	require.Equal(t, baseline, c.policy("acme"))

	self, err := os.Executable()
	require.NoError(t, err)
	for compilers, want := range map[workers.Compilers]string{
		workers.CompilersNone: "", "jit": `Compilers is "jit": it is full, baseline or none`, // it gets them
	} {
		check := (&Checks{Executable: self, CheckConfig: isolates.CheckConfig{Compilers: compilers}}).Open((&lines{}).log)
		if _, err = check.Check(t.Context(), worker(`export default { task() {} }`)); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
		check.Close()
	}
}

// The check has V8 compile each module of WebAssembly of the bundle, also those that only a handler would get.
func TestCheckOfWebAssembly(t *testing.T) {
	t.Parallel()
	fine := "\x00asm\x01\x00\x00\x00"
	// A function of type () -> i32 that gives nothing: only V8 sees that.
	wrong := "\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b"
	inBoth(t, func(t *testing.T, c *Checks) {
		for code, failure := range map[string]string{fine: "", wrong: "CompileError"} {
			check := c.Open((&lines{}).log)
			sum := sha256.Sum256([]byte(code))
			w := worker(`export default { task() {} }; const pinwheelImported = 1;`)
			w.Modules = []*workers.Module{{Hash: hex.EncodeToString(sum[:]), Code: []byte(code)}}
			has, err := check.Check(t.Context(), w)
			check.Close()
			if failure == "" {
				require.NoError(t, err)
				require.Equal(t, []events.Kind{events.Task}, has.Kinds)
			} else {
				require.ErrorContains(t, err, failure)
			}
		}
		for says, policy := range map[string]workers.Policy{
			"this owner does not have them (policy: compilers)": {WASM: true, Compilers: workers.CompilersBaseline},
			"its operator grants it (policy: wasm)":             {},
		} {
			c.PolicyOf = func(string) workers.Policy { return policy }
			check := c.Open((&lines{}).log)
			w := worker(`export default { task() {} };`)
			w.Modules = []*workers.Module{{Hash: "x", Code: []byte(fine)}}
			_, err := check.Check(t.Context(), w)
			require.ErrorContains(t, err, says)
			check.Close()
		}
	})
}
