package isolates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// safe gives the pool secrets that a test changes.
type safe struct {
	mu  sync.Mutex
	now *Secrets
	err error
}

func (s *safe) of(*workers.Worker) (*Secrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.err
}

// set replaces the value of KEY.
func (s *safe) set(value string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		s.now.Replace()
	}
	s.now, s.err = nil, err
	if err == nil {
		s.now = NewSecrets(map[string]string{"KEY": value})
	}
}

// keyed is a worker that names the secret KEY, has the var OTHER, and tells how many events its context has seen. A
// request with a body waits until the body ends.
func keyed(name string) *workers.Worker {
	w := worker(name, `let n = 0;
export default { async fetch(request, env) {
  n++;
  if (request.url.endsWith("slow")) { await new Promise((done) => setTimeout(done, 300)); }
  return new Response(env.KEY + env.OTHER + n);
} }`)
	w.Secrets, w.Vars = []string{"KEY"}, map[string]string{"OTHER": "+"}
	return w
}

// A new value reaches the next event in every mode, without waiting for the end of those that run: they keep the old
// value.
func TestANewValueOfASecretReachesTheNextEvent(t *testing.T) {
	t.Parallel()
	s := &safe{}
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		s.set("one", nil)
		w := keyed("w")
		call := func(path string) string {
			o := b.run(w, fetch("GET", "http://x/"+path, ""))
			require.Nil(t, o.end.Failure)
			return string(o.reply.Body)
		}
		require.Equal(t, "one+1", call(""))
		again := "one+2"
		if b.mode == workers.Oneshot {
			again = "one+1"
		}
		require.Equal(t, again, call(""), "the context is used again while nothing changes")

		slow := b.start(w, fetch("GET", "http://x/slow", ""))
		require.Eventually(t, func() bool { return b.pool.Stats().Running == 1 || isDone(slow) }, patience, time.Millisecond)
		s.set("two", nil)
		require.Equal(t, "two+1", call(""))
		slow.wait(t, slow.ended)
		require.True(t, strings.HasPrefix(string(slow.reply.Body), "one+"), "what runs keeps its value: %s", slow.reply.Body)
		require.True(t, strings.HasPrefix(call(""), "two+"), "the context of the old value is not used again")
	}, func(c *Config) { c.Secrets = s.of })
}

func isDone(o *outcome) bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// After Renew no context with an old value is left, also of workers that get no more events. Others stay.
func TestRenewEndsContextsWithOldValues(t *testing.T) {
	t.Parallel()
	s := &safe{}
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		if b.mode == workers.Oneshot {
			t.Skip("no context outlives its event")
		}
		s.set("one", nil)
		contexts := func(name string) int {
			for _, w := range b.pool.Stats().Workers {
				if w.Worker == "acme/"+name {
					return w.Contexts
				}
			}
			return 0
		}
		b.run(keyed("w"), fetch("GET", "http://x/", ""))
		other := worker("other", `export default { fetch: () => new Response("") }`)
		b.run(other, fetch("GET", "http://x/", ""))
		require.Eventually(t, func() bool { return contexts("w") == 1 && contexts("other") == 1 }, patience, time.Millisecond)
		b.pool.Renew("acme", "w")
		b.run(other, fetch("GET", "http://x/", ""))
		require.Equal(t, 1, contexts("w"), "nothing was replaced")
		s.set("two", nil)
		b.pool.Renew("acme", "w")
		require.Eventually(t, func() bool { return contexts("w") == 0 }, patience, time.Millisecond)
		require.Equal(t, 1, contexts("other"))
		require.Positive(t, b.pool.Stats().Discards[discardSecrets])
	}, func(c *Config) { c.Secrets = s.of })
}

// A worker whose secrets are not known does not run: with undefined in place of a key it might accept anything.
func TestAWorkerWithoutItsSecretsDoesNotRun(t *testing.T) {
	t.Parallel()
	s := &safe{err: errors.New("secret KEY of acme/w is not set")}
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		s.set("", errors.New("secret KEY of acme/w is not set"))
		o := b.run(keyed("w"), fetch("GET", "http://x/", ""))
		require.Equal(t, &events.Failure{Reason: events.ReasonException, Message: "secret KEY of acme/w is not set"},
			o.end.Failure)
		require.True(t, o.end.Failure.Reason.Transient(), "it runs again later")
		s.set("one", nil)
		require.Equal(t, "one+1", string(b.run(keyed("w"), fetch("GET", "http://x/", "")).reply.Body))
		s.set("", errors.New("secret KEY of acme/w is not set"))
		require.NotNil(t, b.run(keyed("w"), fetch("GET", "http://x/", "")).end.Failure, "also when it has warm contexts")
	}, func(c *Config) { c.Secrets = s.of })

	b := newBench(t)
	b.cpu = ample
	f := b.run(keyed("w"), fetch("GET", "http://x/", "")).end.Failure
	require.ErrorContains(t, f, "this process has no secrets")
}

// The check before a deploy has no values: a module finds a placeholder.
func TestTheCheckerHasNoSecrets(t *testing.T) {
	t.Parallel()
	c, err := OpenChecker(nil, CheckConfig{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	kinds, err := c.Check(t.Context(), keyed("w"))
	require.NoError(t, err)
	require.Equal(t, []events.Kind{events.Fetch}, kinds.Kinds)
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	s := NewSecrets(map[string]string{"KEY": "s3cret"})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, what := range []any{s, &jsContext{secrets: s}, struct{ S *Secrets }{s}} {
			require.NotContains(t, fmt.Sprintf(verb, what), "s3cret")
		}
	}
}

// A reset ends the contexts of a worker, and of no other one. What runs finishes, and no later event begins where it
// ran.
func TestResetEndsContexts(t *testing.T) {
	t.Parallel()
	const code = `const id = String(Math.random());
export default { async fetch(r) {
	if (r.url.endsWith("slow")) { console.log("begun"); await new Promise(done => setTimeout(done, 300)); }
	return new Response(id);
} }`
	var mu sync.Mutex
	var changes map[string]bool // what became of contexts, and why
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w, other := worker("w", code), worker("other", code)
		contexts := func(name string) int {
			for _, s := range b.pool.Stats().Workers {
				if s.Worker == "acme/"+name {
					return s.Contexts
				}
			}
			return 0
		}
		old := map[string]bool{string(b.run(w, fetch("GET", "http://x/", "")).reply.Body): true}
		b.run(other, fetch("GET", "http://x/", ""))
		others := 0 // no context of mode oneshot outlives its event
		if b.mode != workers.Oneshot {
			others = contexts("other")
		}
		slow := b.start(w, fetch("GET", "http://x/slow", ""))
		require.Eventually(t, func() bool { return slices.Contains(b.lines(), "begun") }, patience, time.Millisecond)
		Reset(b.pool, "acme", "w")
		<-slow.ended
		require.Nil(t, slow.end.Failure)
		old[string(slow.reply.Body)] = true
		require.Eventually(t, func() bool { return contexts("w") == 0 }, patience, time.Millisecond)
		for range 3 {
			require.NotContains(t, old, string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		}
		require.Eventually(t, func() bool { return contexts("other") == others }, patience, time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		require.Contains(t, changes, ContextMade)
		if b.mode != workers.Oneshot {
			require.Positive(t, b.pool.Stats().Discards[discardReset])
			require.Contains(t, changes, ContextDiscarded+" reset")
		}
	}, func(c *Config) {
		c.OnContext = func(x ContextChange) {
			mu.Lock()
			defer mu.Unlock()
			if changes == nil {
				changes = map[string]bool{}
			}
			changes[strings.TrimSpace(x.What+" "+x.Reason)] = x.Worker.Owner == "acme"
		}
	})
}
