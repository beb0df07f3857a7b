package hostileowners

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// costThreads has acme publish events that V8 does not end, again and again: tasks with their retries and fetches, of
// several workers, modes and versions. beta calls its own worker meanwhile.
func costThreads(t *testing.T, f *fleet) (harm string) {
	const code = `const never = () => [].indexOf.call({ length: 2 ** 53 - 1 }, 1);
		export default { task: never, fetch: never } // `
	const manifest = `{"limits": {"cpuMs": 20}, "retries": {"initialMs": 10, "maxMs": 10}%s}`
	workers := map[string]string{"pinned": "", "persistent": `, "mode": "persistent"`, "oneshot": `, "mode": "oneshot"`}
	for name, mode := range workers {
		f.deploy("acme", name, code, fmt.Sprintf(manifest, mode))
	}
	f.deploy("acme", "timer", `export default { task() { setTimeout(() => [].indexOf.call({ length: 2 ** 53 - 1 }, 1), 20) } }`, fmt.Sprintf(manifest, `, "mode": "persistent"`))
	f.deploy("beta", "echo", `export default { task: event => event.payload }`, "")
	acme, beta, p := f.as("acme"), f.as("beta"), f.processes[0]
	done := make(chan struct{})
	var mu sync.Mutex
	harmed := func(what string) bool { // adds what to harm, and reports whether there is any
		mu.Lock()
		defer mu.Unlock()
		harm += what
		return harm != ""
	}
	var calling sync.WaitGroup
	calling.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond) // tests run beside this one
		defer tick.Stop()
		for answered := 0; ; answered++ {
			select {
			case <-done:
				t.Logf("%d calls of beta's", answered)
				return
			case <-tick.C:
			}
			m, err := beta.Request("pinwheel.call.task.beta.echo", []byte("1"), 20*time.Second)
			what := ""
			if err != nil {
				what = fmt.Sprintf("a call of beta's: %v; ", err)
			} else if r, err := events.DecodeReply(events.Header(m.Header), m.Data); err != nil || r.Failure != nil {
				what = fmt.Sprintf("a call of beta's: %v, %v; ", err, r)
			}
			if harmed(what) {
				return
			}
		}
	})
	health := func() (what string) {
		for _, path := range []string{"/readyz", "/healthz"} {
			switch status, text, err := p.TryGet(path); {
			case err != nil:
				what += fmt.Sprintf("%s: %v; ", path, err)
			case status != 200:
				what += fmt.Sprintf("%s: %s; ", path, text)
			}
		}
		return what
	}
	for round := range int(f.attackFor(3*time.Second) / time.Second) {
		for i := range 4 {
			for name := range workers {
				_ = acme.Publish("pinwheel.events.task.acme."+name, []byte("{}"))
				_ = acme.Publish("pinwheel.events.fetch.acme."+name, nil)
			}
			if i == 3 {
				_ = acme.Publish("pinwheel.events.task.acme.timer", []byte("{}"))
			}
		}
		until(t, "a second", sinceStart(time.Second))
		if !p.Alive() || f.unguarded && harmed(health()) {
			break
		}
		if round == 2 {
			f.deploy("acme", "pinned", code+"again", fmt.Sprintf(manifest, ""))
			f.deploy("acme", "late", code, fmt.Sprintf(manifest, ""))
			workers["late"] = ""
		}
	}
	close(done)
	calling.Wait()
	if !p.Alive() {
		return harm + "the process has ended"
	}
	return harm + health()
}

// sinceStart returns a function that reports whether d has passed since sinceStart was called.
func sinceStart(d time.Duration) func() bool {
	start := time.Now()
	return func() bool { return time.Since(start) > d }
}
