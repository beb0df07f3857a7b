package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Where a child process that is a Consumer finds NATS, and how it dies: "step:n:flush" ends it at the n-th
// time of a step, with what it has published by then sent or not.
const (
	childURL = "PINWHEEL_TEST_CONSUMER_URL"
	childDie = "PINWHEEL_TEST_CONSUMER_DIE"
)

// byBody handles an event as its body says. What it decides depends on nothing but the event, so that it is known how
// each must end.
func byBody(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	outcome, _, _ := strings.Cut(string(e.Body), " ")
	again := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
		Verdict: lifecycle.Retry, Delay: 5 * time.Millisecond, Version: "1-abc", Failure: events.Fail(events.ReasonException,
			"try %d", e.Attempt),
	}}
	switch {
	case outcome == "later" && e.Attempt == 1:
		again.Outcome.Delay = 300 * time.Millisecond
		return again, true
	case outcome == "retry" && e.Attempt == 1, outcome == "retry-dead" && e.Attempt == 1:
		return again, true
	case outcome == "dead", outcome == "retry-dead", outcome == "dead-notified":
		s, _ := dead(e)
		if outcome == "dead-notified" {
			s.Outcome.OnDead = &events.DeadHook{Worker: "undertaker"}
		}
		s.Reply = e.FailureReply(s.Outcome.Failure)
		s.Reply.EventID, s.Reply.Attempt = e.ID, e.Attempt
		return s, true
	case outcome == "return" && e.Origin.Deliveries == 1:
		return lifecycle.Settlement{Event: e, Order: lifecycle.Return}, true
	case outcome == "park" && e.Origin.Stream == events.StreamEvents && e.Attempt == 1:
		return park(e)
	}
	return echo(e)
}

func crashConfig() consumer.Config {
	cfg := testConfig()
	cfg.AckWait, cfg.LongRetry = 400*time.Millisecond, 100*time.Millisecond
	cfg.Catalog = idempotent("once")
	return cfg
}

// beConsumer is the child: a Consumer that works until it gets to the step at which it dies.
func beConsumer(url string) error {
	nc, err := natstest.Dial(url)
	if err != nil {
		return err
	}
	cfg := crashConfig()
	var step string
	var n atomic.Int64
	var flush bool
	if die := strings.Split(os.Getenv(childDie), ":"); len(die) == 3 {
		step = die[0]
		times, _ := strconv.ParseInt(die[1], 10, 64)
		n.Store(times)
		flush = die[2] == "true"
	}
	cfg.Step = func(s consumer.Step) {
		if string(s) == step && n.Add(-1) == 0 {
			if flush {
				_ = nc.Flush()
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	d := &dispatcher{inline: true, forget: true, handle: byBody}
	if step == string(consumer.StepRetryStored) { // however slowly it dies, its second run is not announced
		// Nor does it leave the process because a quarter of the window waits: it would be due in an hour, for
		// everybody.
		cfg.LongRetry, cfg.Window = 2*time.Hour, 4096
		d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			s, ok := byBody(e)
			if s.Outcome.Verdict == lifecycle.Retry {
				s.Outcome.Delay = time.Hour
			}
			return s, ok
		}
	}
	c, err := consumer.New(cfg, nc, d, zerolog.Nop(), nil)
	if err != nil {
		return err
	}
	d.settle = c.Settle
	return c.Run(context.Background(), context.Background())
}

// startConsumer starts the child; dead is closed when it has died.
func startConsumer(t testing.TB, url, die string) (cmd *exec.Cmd, dead chan struct{}) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childDie+"="+die)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	dead = make(chan struct{})
	go func() { defer close(dead); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-dead })
	return cmd, dead
}

// replyBook notes what comes as replies: by the event's body, the bodies and the attempts of its replies.
type replyBook struct {
	mu      sync.Mutex
	replies map[string][]*events.Reply
}

func keepReplies(t testing.TB, nc *nats.Conn) *replyBook {
	t.Helper()
	b := &replyBook{replies: map[string][]*events.Reply{}}
	_, err := nc.Subscribe("_INBOX.steps.*", func(m *nats.Msg) {
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		if err != nil {
			t.Error(err)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		name := strings.ReplaceAll(strings.TrimPrefix(m.Subject, "_INBOX.steps."), "~", " ")
		b.replies[name] = append(b.replies[name], r)
	})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return b
}

func (b *replyBook) of(body string) []*events.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*events.Reply(nil), b.replies[body]...)
}

// publishSteps publishes an event whose body says what becomes of it.
func publishSteps(t testing.TB, nc *nats.Conn, body string) {
	t.Helper()
	h := nats.Header{events.HeaderReplyTo: {"_INBOX.steps." + strings.ReplaceAll(body, " ", "~")},
		events.HeaderEventID: {body}}
	if strings.HasPrefix(body, "malformed") {
		h.Set(events.HeaderContentType, "application/json")
	}
	if strings.HasPrefix(body, "delay") {
		h.Set(events.HeaderDeliverAfter, "0.3")
	}
	if strings.HasPrefix(body, "replayed") {
		h.Set(events.HeaderReplay, (&events.DeadLetter{EventID: body}).ReplayMark("n"))
	}
	owner := "o" + strconv.Itoa(len(body)%4)
	if strings.HasPrefix(body, "once") {
		owner = "once"
	}
	publish(t, nc, events.Task, owner, h, body)
}

// TestCrashBetweenTwoSteps kills a process at each step of each way in which an event ends. The process that takes over
// ends it as documented.
func TestCrashBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		outcome string
		step    consumer.Step
		attempt int // of the last reply, when what the dying process published was sent
	}{
		{"ack", consumer.StepReplied, 2}, // the run had ended, but that is not recorded: it counts
		{"ack", consumer.StepAcked, 1},
		{"ack", consumer.StepConfirmed, 1},
		{"once", consumer.StepReplied, 2}, // an idempotent worker's: nothing is stored yet
		{"once", consumer.StepResultStored, 1},
		{"once", consumer.StepAcked, 1},
		{"once", consumer.StepConfirmed, 1},
		{"dead", consumer.StepReplied, 2},
		{"dead", consumer.StepDeadStored, 1}, // the letter is found before the event would run again
		{"dead", consumer.StepAcked, 1},
		{"dead", consumer.StepConfirmed, 1},
		{"dead-notified", consumer.StepDeadStored, 1},
		{"dead-notified", consumer.StepDeadNotified, 1},
		{"dead-notified", consumer.StepAcked, 1},
		{"replayed", consumer.StepClaimed, 2},
		{"replayed", consumer.StepEndStored, 1},
		{"replayed", consumer.StepAcked, 1},
		{"malformed", consumer.StepReplied, 1},
		{"malformed", consumer.StepDeadStored, 1},
		{"malformed", consumer.StepAcked, 1},
		{"retry", consumer.StepRetryStored, 2},
		{"retry", consumer.StepRetryDue, 0}, // 2 when the second run was over by then; else 3, because it had been announced
		{"retry", consumer.StepReplied, 3},
		{"retry", consumer.StepAcked, 2},
		{"retry", consumer.StepConfirmed, 2},
		{"retry-dead", consumer.StepRetryStored, 2},
		{"retry-dead", consumer.StepDeadStored, 2},
		{"return", consumer.StepReturnStored, 1},
		{"return", consumer.StepReplied, 2},
		{"park", consumer.StepParkStored, 1},
		{"park", consumer.StepAcked, 1},
		{"park", consumer.StepConfirmed, 1},
		{"park", consumer.StepReplied, 2},
		{"delay", consumer.StepDelayed, 1},
		{"delay", consumer.StepAcked, 1},
		{"delay", consumer.StepConfirmed, 1},
		{"delay", consumer.StepReplied, 2},
		{"later", consumer.StepMoveNoted, 2},
		{"later", consumer.StepDelayed, 2},
		{"later", consumer.StepAcked, 2},
		{"later", consumer.StepConfirmed, 2},
		{"later", consumer.StepReplied, 3},
	} {
		for _, flush := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%s/flush=%t", row.outcome, row.step, flush), func(t *testing.T) {
				t.Parallel()
				crashOnce(t, row.outcome, row.step, row.attempt, flush)
			})
		}
	}
}

// cameBefore reports whether the copy of a delayed or parked event came to the process that died before it came to its
// heir: it took long to die, and whether the event ran is not known.
func cameBefore(heir *dispatcher) bool {
	return slices.ContainsFunc(heir.events(), func(e *lifecycle.Delivery) bool {
		return e.Origin.Stream != events.StreamEvents && e.Origin.Deliveries > 1
	})
}

// cameAgain reports whether the event was delivered again to the process that died, which was slow to: a run of that
// delivery cannot be excluded then.
func cameAgain(heir *dispatcher, outcome string) bool {
	most := 2
	if outcome == "return" {
		most++ // it gave the event back before
	}
	return slices.ContainsFunc(heir.events(), func(e *lifecycle.Delivery) bool { return e.Origin.Deliveries > most })
}

func crashOnce(t *testing.T, outcome string, step consumer.Step, attempt int, flush bool) {
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, crashConfig(), nc.MaxPayload()))
	book := keepReplies(t, nc)
	publishSteps(t, nc, outcome)
	_, died := startConsumer(t, srv.URL(), fmt.Sprintf("%s:1:%t", step, flush))
	select {
	case <-died:
	case <-time.After(patience):
		t.Fatal("the process has not got to that step")
	}
	heir := &dispatcher{inline: true, handle: byBody}
	f := start(t, natstest.Connect(t, srv), crashConfig(), heir)
	ended(t, js, f)

	// nats.go may be a moment behind
	require.Eventually(t, func() bool { return len(book.of(outcome)) > 0 }, patience, time.Millisecond)
	replies := book.of(outcome)
	last := replies[len(replies)-1]
	if flush && attempt > 0 && !cameBefore(heir) && !cameAgain(heir, outcome) {
		require.Equal(t, attempt, last.Attempt)
	}
	checkEnd(t, js, outcome, replies)
	if step != consumer.StepReplied && (outcome == "delay" || outcome == "later") {
		require.Len(t, replies, 1, "it was put off when the process died, and runs once")
	}
	told := 0
	for _, e := range heir.events() {
		if e.Worker == "undertaker" {
			told++
		}
		require.NotEqual(t, "park", outcome+strconv.Itoa(e.Crashes), "neither copy of a parked event counts as crashed")
		require.False(t, outcome == "once" && step != consumer.StepReplied, "what has a result must not run again")
		if outcome == "park" && (step == consumer.StepParkStored || step == consumer.StepAcked) {
			require.Equal(t, events.StreamParked, e.Origin.Stream, "what is parked must not run from the event stream too")
		}
	}
	if outcome == "dead-notified" { // later than this step the process that died may have run it
		require.True(t, told == 1 || told == 0 && step != consumer.StepDeadStored, "told %d times", told)
	}
	gone := outcome == "later" && (step == consumer.StepAcked || step == consumer.StepConfirmed)
	if len(heir.events()) > 0 && !gone { // otherwise the event was acked, and its record expires
		kv, err := js.KeyValue(t.Context(), events.BucketAttempts)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			keys, _ := kv.Keys(context.Background())
			// claims stay for their time
			return !slices.ContainsFunc(keys, func(k string) bool { return !strings.HasPrefix(k, "replay.") })
		}, patience, 20*time.Millisecond)
	}
}

// ended waits until no event is left anywhere.
func ended(t testing.TB, js jetstream.JetStream, f *fleet) {
	t.Helper()
	eventuallyStored(t, js, events.StreamEvents, 0)
	eventuallyStored(t, js, events.StreamParked, 0)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
}

// checkEnd compares what has become of an event with what must.
func checkEnd(t testing.TB, js jetstream.JetStream, body string, replies []*events.Reply) {
	t.Helper()
	failed := strings.Contains(body, "dead") || strings.HasPrefix(body, "malformed")
	n := 0
	for _, l := range letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{}) {
		if l.EventID == body {
			n++
			require.Equal(t, body, string(l.Body))
		}
	}
	require.Equal(t, failed, n == 1, "dead letters of %q: %d", body, n)
	require.LessOrEqual(t, n, 1, "dead letters of %q", body)
	for _, r := range replies {
		require.Equal(t, body, r.EventID)
		require.Equal(t, failed, strings.Contains(string(r.Body), `"success":false`), "%q: %s", body, r.Body)
		if !failed {
			require.Equal(t, body, string(r.Body))
		}
	}
}

// TestCrashesAtRandomSteps lets one process after the other die at some step in the middle of many events.
func TestCrashesAtRandomSteps(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, crashConfig(), nc.MaxPayload()))
	book := keepReplies(t, nc)
	outcomes := []string{"ack", "dead", "malformed", "retry", "retry-dead", "return", "park", "delay", "later", "once"}
	steps := []consumer.Step{
		consumer.StepReplied, consumer.StepDeadStored, consumer.StepParkStored, consumer.StepReturnStored,
		consumer.StepRetryStored, consumer.StepRetryDue, consumer.StepAcked, consumer.StepConfirmed,
		consumer.StepMoveNoted, consumer.StepDelayed, consumer.StepResultStored,
	}
	var bodies []string
	for i := range 300 {
		body := fmt.Sprintf("%s %d", outcomes[random.IntN(len(outcomes))], i)
		bodies = append(bodies, body)
		publishSteps(t, nc, body)
	}
	for range 6 {
		cmd, died := startConsumer(t, srv.URL(), fmt.Sprintf("%s:%d:%t", steps[random.IntN(len(steps))], 1+random.IntN(30),
			random.IntN(2) == 0))
		select {
		case <-died:
		case <-time.After(time.Second): // too few events are left for that step: any moment will do
			require.NoError(t, cmd.Process.Kill())
			<-died
		}
	}
	ended(t, js, start(t, natstest.Connect(t, srv), crashConfig(),
		&dispatcher{inline: true, forget: true, handle: byBody}))
	for _, body := range bodies {
		checkEnd(t, js, body, book.of(body))
		require.NotEmpty(t, book.of(body), body)
	}
}
