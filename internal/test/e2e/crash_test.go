package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// outlaw ends a supervisor's process whenever a guilty event runs: the test sees in the output that the event runs, and
// sends the signal.
type outlaw struct {
	*supervisor
	h *testFleet

	together int            // the first signal comes when so many events are delivered
	signal   syscall.Signal // that ends processes
	most     int            // so many are ended; 0 = all

	mu    sync.Mutex
	last  int // the process that was ended last
	kills int
	runs  map[string]int // started runs of the other events, by their output
}

// The guilty events run until they are killed; others print that they have begun.
const (
	guiltyCode   = `export default { async task(event) { console.log("guilty"); await new Promise(done => setTimeout(done, 25000)) } }`
	innocentCode = `export default { async task(event) { console.log("run " + event.id); await new Promise(done => setTimeout(done, event.payload.ms)); return event.attempt } }`
)

func newOutlaw(t *testing.T, env ...string) *outlaw {
	srv := natstest.Start(t)
	o := &outlaw{h: &testFleet{t: t}, runs: map[string]int{}, signal: syscall.SIGSEGV}
	o.h.connect(srv.URL())
	o.supervisor = supervise(t,
		append([]string{"PINWHEEL_NATS_URL=" + srv.URL(), "PINWHEEL_PROCESSES=1", "PINWHEEL_ACK_WAIT=500ms",
			"PINWHEEL_THREADS=2"}, env...)...)
	return o
}

// watch ends the process whenever the guilty event runs. The supervisor starts another.
func (o *outlaw) watch() {
	_, err := o.h.nc.Subscribe("pinwheel.logs.>", func(m *nats.Msg) {
		var line struct{ Text string }
		_ = json.Unmarshal(m.Data, &line)
		o.mu.Lock()
		defer o.mu.Unlock()
		if id, ok := strings.CutPrefix(line.Text, "run "); ok {
			o.runs[id]++
		}
		if line.Text == "guilty" {
			for n := 0; o.kills == 0 && n < o.together && o.t.Context().Err() == nil; {
				n = o.delivered()
			}
			o.kill()
		}
	})
	require.NoError(o.t, err)
	require.NoError(o.t, o.h.nc.Flush())
}

// delivered is how many events processes have and did not ack.
func (o *outlaw) delivered() (n int) {
	s, err := o.h.js.Stream(o.t.Context(), events.StreamEvents)
	if err != nil {
		return 0
	}
	for c := range s.ListConsumers(o.t.Context()).Info() {
		n += c.NumAckPending
	}
	return n
}

// kill ends the process that runs the guilty event: not the one before, whose end the supervisor may not know yet. The
// caller holds mu.
func (o *outlaw) kill() {
	if o.most > 0 && o.kills == o.most {
		return
	}
	pid := o.last
	for (pid == o.last || pid == 0) && o.t.Context().Err() == nil {
		pid = o.pid(0)
	}
	if syscall.Kill(pid, o.signal) == nil {
		o.last = pid
		o.kills++
	}
}

func (o *outlaw) counts() (kills int, runs map[string]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	runs = map[string]int{}
	for id, n := range o.runs {
		runs[id] = n
	}
	return o.kills, runs
}

// An event that kills its process each time becomes a dead letter after the third time. The events that ran beside it,
// or waited behind it, succeed.
func TestEventThatKillsItsProcessIsQuarantined(t *testing.T) {
	t.Parallel()
	o := newOutlaw(t)
	o.h.deploy("bad", "w", guiltyCode)
	o.h.deploy("good", "w", innocentCode)
	o.watch()
	replies := map[string]<-chan *nats.Msg{}
	for i := range 40 {
		id := fmt.Sprint("n", i)
		if i == 20 {
			replies["guilty"] = o.h.send(events.Task, "bad/w", `{}`)
		}
		replies[id] = o.h.send(events.Task, "good/w", fmt.Sprintf(`{"ms":%d}`, 10*i), events.HeaderEventID, id)
	}
	r := o.h.reply(replies["guilty"])
	require.Equal(t, events.ReasonCrash, r.Failure.Reason)
	delete(replies, "guilty")
	missed := 0
	for id, c := range replies {
		r := o.h.reply(c)
		var result struct{ Data int }
		require.NoError(t, json.Unmarshal(r.Body, &result))
		_, runs := o.counts()
		require.Equal(t, r.Attempt, result.Data)
		require.LessOrEqual(t, runs[id], r.Attempt+1, id) // the reply may be the first of two
		if runs[id]+1 < r.Attempt {
			missed++
		}
	}
	require.Less(t, missed, 20, "only of its first delivery nobody knows whether an event ran; and what a process said last may be lost with it")
	o.h.settled()
	kills, _ := o.counts()
	require.Equal(t, 3, kills)
	letters := o.h.dead()
	require.Len(t, letters, 1)
	require.Equal(t, events.ReasonCrash, letters[0].Failure.Reason)
	require.Equal(t, 3, letters[0].Attempts)
}

// An event in whose runs somebody kills the process is not the reason, however often it happens. It ends well, and has
// as many retries as any other.
func TestKillsFromOutsideAreNoStrikes(t *testing.T) {
	t.Parallel()
	const kills = 7
	o := newOutlaw(t)
	o.signal, o.most = syscall.SIGKILL, kills
	o.h.deploy("acme", "w", `export default { async task(event) {
			console.log("guilty")
			if (event.attempt <= 7) await new Promise(done => setTimeout(done, 25000))
			if (event.attempt < 10) throw new Error("it fails, and would be dead if each kill had been a try")
			return event.attempt
		} }`, `{"retries": {"maxAttempts": 4, "initialMs": 1, "maxMs": 1}}`)
	o.watch()
	r := o.h.reply(o.h.send(events.Task, "acme/w", `{}`))
	require.Nil(t, r.Failure)
	require.Equal(t, kills+3, r.Attempt)
	o.h.settled()
	n, _ := o.counts()
	require.Equal(t, kills, n)
	require.Empty(t, o.h.dead())
}

// An event that only waits while processes die is not ended for that, however often it happens. Its attempts are
// counted correctly.
func TestEventThatOnlyWaitsIsNotPunished(t *testing.T) {
	t.Parallel()
	o := newOutlaw(t, "PINWHEEL_OWNER_MAX_RUNNING=1")
	o.together = 3
	o.h.deploy("acme", "bad", guiltyCode)
	o.h.deploy("acme", "good", innocentCode)
	o.watch()
	guilty := []<-chan *nats.Msg{o.h.send(events.Task, "acme/bad", `{}`), o.h.send(events.Task, "acme/bad", `{}`)}
	good := o.h.send(events.Task, "acme/good", `{"ms":1}`, events.HeaderEventID, "good")
	for _, c := range guilty {
		require.Equal(t, events.ReasonCrash, o.h.reply(c).Failure.Reason)
	}
	r := o.h.reply(good)
	require.Nil(t, r.Failure)
	_, runs := o.counts()
	require.Equal(t, 1, runs["good"])
	require.Equal(t, 2, r.Attempt, "nobody knows that it did not run the first time; after that it is known")
	o.h.settled()
	require.Len(t, o.h.dead(), 2)
}

// Drains are not counted as crashes, neither while the event waits nor while it runs.
func TestDrainsAreNoStrikes(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	start := func() *fleettest.Process {
		return fleettest.Serve(t, srv.URL(), "PINWHEEL_ACK_WAIT=500ms", "PINWHEEL_THREADS=2", "PINWHEEL_DRAIN_TIMEOUT=1ms")
	}
	process := start()
	h.deploy("acme", "w", guiltyCode)
	lines, err := h.nc.SubscribeSync("pinwheel.logs.>")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	reply := h.send(events.Task, "acme/w", `{}`)
	for n := range 6 {
		_, err := lines.NextMsg(patience)
		require.NoError(t, err)
		if n == 1 { // a crash of which nobody knows why
			process.Kill()
		} else {
			process.Signal(syscall.SIGTERM)
		}
		_ = process.Wait()
		process = start()
	}
	_, err = lines.NextMsg(patience)
	require.NoError(t, err)
	require.Empty(t, reply)
	require.Empty(t, h.dead())
}
