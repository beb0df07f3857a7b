package fleet

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// outlaw simulates an event that kills its process: the test sees in the output that the event runs, and sends the
// SIGKILL.
type outlaw struct {
	t     *testing.T
	h     *house
	start func() *exec.Cmd

	together int // the first kill comes when so many events are delivered

	mu      sync.Mutex
	process *exec.Cmd // nil while the next one starts
	early   bool      // the guilty event already runs in that process
	kills   int
	runs    map[string]int // started runs of the other events, by their output
}

// The guilty events run until they are killed; others print that they have begun.
const (
	guiltyCode   = `export default { async task(event) { console.log("guilty"); await new Promise(done => setTimeout(done, 25000)) } }`
	innocentCode = `export default { async task(event) { console.log("run " + event.id); await new Promise(done => setTimeout(done, event.payload.ms)); return event.attempt } }`
)

func newOutlaw(t *testing.T, env ...string) *outlaw {
	srv := natstest.Start(t)
	o := &outlaw{t: t, h: &house{t: t}, runs: map[string]int{}}
	o.h.connect(srv.URL())
	o.start = func() *exec.Cmd {
		return startProcess(t, srv.URL(), append([]string{"PINWHEEL_ACK_WAIT=500ms", "PINWHEEL_THREADS=2"}, env...)...)
	}
	o.process = o.start()
	return o
}

// watch kills the process whenever the guilty event runs, and starts another.
func (o *outlaw) watch() {
	dead := make(chan *exec.Cmd, 16)
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
			o.early = o.process == nil
			o.kill(dead)
		}
	})
	require.NoError(o.t, err)
	require.NoError(o.t, o.h.nc.Flush())
	require.NoError(o.t, o.h.nc.Flush())
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case cmd := <-dead:
				_ = cmd.Wait()
				p := o.start()
				o.mu.Lock()
				o.process = p
				if o.early {
					o.early = false
					o.kill(dead)
				}
				o.mu.Unlock()
			case <-done:
				return
			}
		}
	})
	o.t.Cleanup(func() { close(done); running.Wait() })
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

// kill kills the process, if there is one, and sends it to dead. The caller holds mu.
func (o *outlaw) kill(dead chan<- *exec.Cmd) {
	if o.process == nil {
		return
	}
	_ = o.process.Process.Kill()
	dead <- o.process
	o.process = nil
	o.kills++
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
	o := newOutlaw(t, "PINWHEEL_DRAIN_TIMEOUT=1ms")
	o.h.deploy("acme", "w", guiltyCode)
	lines, err := o.h.nc.SubscribeSync("pinwheel.logs.>")
	require.NoError(t, err)
	require.NoError(t, o.h.nc.Flush())
	reply := o.h.send(events.Task, "acme/w", `{}`)
	for n := range 6 {
		_, err := lines.NextMsg(patience)
		require.NoError(t, err)
		if n == 1 { // a real crash
			require.NoError(t, o.process.Process.Kill())
		} else {
			require.NoError(t, o.process.Process.Signal(syscall.SIGTERM))
		}
		_ = o.process.Wait()
		o.process = o.start()
	}
	_, err = lines.NextMsg(patience)
	require.NoError(t, err)
	require.Empty(t, reply)
	require.Empty(t, o.h.dead())
}
