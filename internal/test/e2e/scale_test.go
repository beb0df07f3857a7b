package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// scaled is a fleet that has as many processes as /scale wants, 2 to 8, and events of which each has a number.
type scaled struct {
	*testFleet
	processes []*fleettest.Process
	env       []string
	source    string // of the worker that waits at the gate

	inbox string
	mu    sync.Mutex
	runs  map[string]int // how often each number has begun to run
	ended map[string]int // how often each was answered
	sent  int
}

const (
	fewest, most = 2, 8
	slots        = 4  // of a process
	window       = 32 // events that a process holds
	perProcess   = 33 // events that may wait
	backlog      = most*window + slots
)

// scaleAnswer is the answer of GET /scale.
type scaleAnswer struct {
	Wanted, Waiting, Paused, Limited, Processes int
	OldestSeconds, Busy                         float64
}

func newScaled(t *testing.T, gate func(), env ...string) *scaled {
	s := &scaled{testFleet: &testFleet{t: t}, runs: map[string]int{}, ended: map[string]int{}}
	work := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.count(s.runs, strings.TrimPrefix(r.URL.Path, "/"))
		gate()
	}))
	t.Cleanup(work.Close)
	srv := natstest.Start(t)
	s.env = []string{"PINWHEEL_THREADS=1", "PINWHEEL_BACKGROUND_THREADS=0", "PINWHEEL_DRAIN_TIMEOUT=1m",
		"PINWHEEL_ALLOW_PRIVATE_ADDRESSES=127.0.0.1", "PINWHEEL_ADMIN_ADDR=127.0.0.1:0",
		fmt.Sprint("PINWHEEL_SLOTS=", slots), fmt.Sprint("PINWHEEL_OWNER_MAX_RUNNING=", slots),
		fmt.Sprint("PINWHEEL_WINDOW=", window)}
	s.env = append(s.env, env...)
	for range fewest {
		s.processes = append(s.processes, fleettest.Serve(t, srv.URL(), s.env...))
	}
	s.connect(srv.URL())
	s.source = fmt.Sprintf(`export default { async fetch(request) {
		const number = await request.text();
		await (await fetch("%s/" + number)).text();
		return new Response(number);
	} }`, work.URL)
	s.deploy("acme", "w", s.source, `{"limits": {"cpuMs": 60000, "wallMs": 900000}}`)
	s.inbox = s.nc.NewInbox()
	_, err := s.nc.Subscribe(s.inbox, func(m *nats.Msg) {
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		if err != nil || r.Failure != nil {
			t.Errorf("reply: %v %+v", err, r)
			return
		}
		s.count(s.ended, string(r.Body))
	})
	require.NoError(t, err)
	return s
}

func (s *scaled) count(in map[string]int, number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[number]++
}

// counted is how many numbers there are.
func (s *scaled) counted(in map[string]int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(in)
}

// publish publishes the next event.
func (s *scaled) publish() error { return s.publishTo("acme", "w") }

func (s *scaled) publishTo(owner, worker string) error {
	s.sent++
	m := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(events.Fetch, owner, worker))
	m.Data = fmt.Append(nil, s.sent)
	m.Header.Set(events.HeaderReplyTo, s.inbox)
	_, err := s.js.PublishMsg(s.t.Context(), m)
	return err
}

// await waits until /scale of the first process says so.
func (s *scaled) await(what string, is func(scaleAnswer) bool) {
	s.t.Helper()
	var last string
	require.Eventually(s.t, func() bool {
		status, body := s.processes[0].Get(fmt.Sprintf("/scale?target=%d", perProcess))
		last = string(body)
		var now scaleAnswer
		return status == http.StatusOK && json.Unmarshal(body, &now) == nil && is(now)
	}, 2*patience, 50*time.Millisecond, "%s", what)
	s.t.Logf("%s: %s", what, strings.TrimSpace(last))
}

// to starts or drains processes until there are so many.
func (s *scaled) to(n int) {
	s.t.Helper()
	for len(s.processes) < n {
		s.processes = append(s.processes, fleettest.Launch(s.t, s.processes[0].URL, s.env...))
	}
	for _, p := range s.processes {
		p.AwaitReady()
	}
	for _, p := range s.processes[n:] {
		p.Signal(os.Interrupt)
	}
	for _, p := range s.processes[n:] {
		require.NoError(s.t, p.Wait())
	}
	s.processes = s.processes[:n]
	s.await(fmt.Sprint(n, " processes"), func(now scaleAnswer) bool { return now.Processes == n })
}

// A fleet grows from 2 processes to 8 when /scale wants more of them for a backlog, and shrinks to 2 again while events
// still come. No event is lost, and none runs twice.
func TestScaleUpAndDown(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	s := newScaled(t, func() { <-open })
	letGo := sync.OnceFunc(func() { close(open) })
	t.Cleanup(letGo) // also when the test fails: events that run hold up the end
	s.await("idle", func(now scaleAnswer) bool { return now.Waiting == 0 && now.OldestSeconds == 0 })
	for range backlog {
		require.NoError(t, s.publish())
	}
	s.await("a backlog", func(now scaleAnswer) bool { return now.Waiting == backlog-slots*fewest })
	s.await("more are wanted", func(now scaleAnswer) bool { return now.Wanted >= most && now.OldestSeconds > 0 })
	require.Equal(t, slots*fewest, s.counted(s.runs))
	s.to(most)
	all := func() bool { return s.counted(s.runs) == slots*most }
	require.Eventually(t, all, patience, 5*time.Millisecond, "all take part")
	letGo()
	require.Eventually(t, func() bool { return s.counted(s.ended) == backlog }, 2*patience, 5*time.Millisecond)

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // one event after the other
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if !assert.NoError(t, s.publish()) || !assert.Eventually(t, func() bool { return s.counted(s.ended) == s.sent },
				patience, 20*time.Millisecond) {
				return
			}
		}
	}()
	s.await("fewer are wanted", func(now scaleAnswer) bool { return now.Wanted <= fewest })
	s.to(fewest)
	from := s.counted(s.ended)
	goOn := func() bool { return s.counted(s.ended) >= from+20 }
	require.Eventually(t, goOn, patience, 5*time.Millisecond, "events go on")
	close(stop)
	<-stopped
	s.settled()
	require.Empty(t, s.dead())
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.sent {
		number := fmt.Sprint(i + 1)
		require.Equal(t, []int{1, 1}, []int{s.runs[number], s.ended[number]}, "runs and answers of event %s", number)
	}
	t.Logf("%d events, each ran once", s.sent)
}
