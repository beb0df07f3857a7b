package hostileowners

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

// echoCode is a worker that harms no one. slowCode is a worker whose events stay stored.
const (
	echoCode = `export default { task: event => event.payload }`
	slowCode = `export default { task: () => new Promise(done => setTimeout(done, 800_000)) }`
	slowJSON = `{"limits": {"wallMs": 900000}}`
)

// tryCall calls beta's worker with 100 KB, and returns the error.
func tryCall(t testing.TB, nc *nats.Conn, owner, worker string) string {
	t.Helper()
	m, err := nc.Request(fmt.Sprintf("%s.call.task.%s.%s", subjects, owner, worker),
		[]byte(`"`+strings.Repeat("x", 100<<10)+`"`), 20*time.Second)
	if err != nil {
		return fmt.Sprintf("a call of %s: %v", owner, err)
	}
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	if r.Failure != nil {
		return fmt.Sprintf("a call of %s: %v", owner, r.Failure)
	}
	return ""
}

// tryDeploy deploys a worker of beta, and returns the error.
func tryDeploy(f *fleet, name string) string {
	f.t.Helper()
	file := writeWorker(f.t, name, echoCode)
	if status, _, text := f.pinwheel("deploy", file, "--owner", "beta"); status != 0 {
		return "a deploy of beta: " + text
	}
	return ""
}

// storage returns the size of a stream in bytes.
func (f *fleet) storage(stream string) uint64 {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), stream)
	require.NoError(f.t, err)
	return s.CachedInfo().State.Bytes
}

// sends: an owner that may make one call a second uses that call to send 100 000 tasks of 1 KB to a slow worker.
func sends(t *testing.T, f *fleet) (harm string) {
	status, _, text := f.pinwheel("owners", "set", "acme", "--calls", "1")
	require.Zero(t, status, text)
	f.deploy("beta", "echo", echoCode, "")
	f.deploy("acme", "slow", slowCode, slowJSON)
	f.deploy("acme", "flood", `export default { async task(event, env) {
		let refused = 0, why = "";
		for (let i = 0; i < 100; i++) {
			const all = await Promise.allSettled(Array.from({ length: 1000 }, () => env.SLOW.send("x".repeat(1000))));
			for (const one of all) if (one.status === "rejected") { refused++; why = one.reason.message; }
			if (refused > 2000) break;
		}
		return { refused, why };
	} }`, `{"queues": {"SLOW": "slow"}, "limits": {"cpuMs": 60000, "wallMs": 600000}}`)
	answer := data[struct {
		Refused int
		Why     string
	}](t, call(t, f.as("acme"), events.Task, "acme", "flood", []byte("1")))
	require.Positive(t, answer.Refused)
	if stored := f.storage(events.StreamEvents) + f.storage(events.StreamParked); stored > 1<<20 {
		harm = fmt.Sprintf("an owner of one call a second has %d bytes of its tasks stored (%s)", stored, answer.Why)
	}
	return harm + tryCall(t, f.as("beta"), "beta", "echo")
}

// fullStreams: an owner without rate limits calls a slow worker until it is refused.
func fullStreams(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", echoCode, "")
	f.deploy("acme", "slow", slowCode, slowJSON)
	acme := f.as("acme")
	refusals, err := acme.SubscribeSync("_INBOX.acme.refusals")
	require.NoError(t, err)
	require.NoError(t, acme.Flush())
	refused := func() int {
		n, _, err := refusals.Pending()
		require.NoError(t, err)
		return n
	}
	flood := func() {
		for range 500 {
			require.NoError(t,
				acme.PublishMsg(&nats.Msg{Subject: string(subjects) + ".call.task.acme.slow", Reply: "_INBOX.acme.refusals",
					Data: make([]byte, 4000)}))
		}
		require.NoError(t, acme.Flush())
	}
	for i := 0; i < 100 && refused() < 3000; i++ { // more than both streams can hold
		flood()
	}
	beta := f.as("beta")
	for range 10 {
		flood()
		r, err := beta.Request(string(subjects)+".call.task.beta.echo", []byte(`"`+strings.Repeat("x", 100<<10)+`"`),
			20*time.Second)
		if err != nil {
			return "a call of beta: " + err.Error()
		}
		if why := r.Header.Get(events.HeaderError); why != "" {
			return "a call of beta: " + why
		}
	}
	require.Positive(t, refused())
	return ""
}

// deadLetters: an owner whose events fail leaves dead letters until the server stores nothing more.
func deadLetters(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", echoCode, "")
	f.deploy("beta", "fails", `export default { task: () => { throw new Error("once") } }`, `{"retries": {"maxAttempts": 1}}`)
	require.NotNil(t, call(t, f.as("beta"), events.Task, "beta", "fails", []byte("1")).Failure)
	f.deploy("acme", "fails", `export default { task: () => { throw new Error("mine") } }`, `{"retries": {"maxAttempts": 1}}`)
	harm = f.fill("fails", nil)
	letters := deadletter.NewStore(f.js, subjects)
	if n, err := letters.Count(t.Context(), deadletter.Filter{Owner: "beta"}); err != nil || n != 1 {
		harm += fmt.Sprintf("beta's letter: %d, %v", n, err)
	}
	return harm
}

// results: an owner's idempotent worker leaves large results, until the results of another owner are gone.
func results(t *testing.T, f *fleet) (harm string) {
	once := `{"idempotent": true}`
	f.deploy("beta", "once", `const much = "y".repeat(150_000); export default { task: () => Math.random() + much }`, once)
	f.deploy("acme", "large", `const large = "x".repeat(100_000); export default { task: () => large }`, once)
	order := func(id string) string {
		m, err := f.as("beta").RequestMsg(&nats.Msg{Subject: string(subjects) + ".call.task.beta.once",
			Header: nats.Header{"Event-Id": {id}}}, patience)
		require.NoError(t, err)
		f.settled()
		return string(m.Data)
	}
	first := order("first")
	acme := f.as("acme")
	for i := range 300 { // 30 MB; the limit is 8
		_, err := acme.RequestMsg(&nats.Msg{Subject: string(subjects) + ".call.task.acme.large",
			Header: nats.Header{"Event-Id": {fmt.Sprint(i)}}}, patience)
		require.NoError(t, err)
	}
	if order("first") != first {
		harm = "an event of beta's idempotent worker from before ran twice; "
	}
	if second := order("second"); order("second") != second {
		harm += "an event of beta's idempotent worker from after ran twice"
	}
	return harm
}

// unready returns why the process is not ready, if it stays so for ten seconds.
func (f *fleet) unready() string {
	f.t.Helper()
	for try := time.Now(); ; <-time.After(100 * time.Millisecond) {
		status, why := f.processes[0].Get("/readyz")
		switch {
		case status == 200:
			return ""
		case time.Since(try) > 10*time.Second:
			return "/readyz: " + string(why)
		}
	}
}

// looked waits until the process has checked how much is stored.
func (f *fleet) looked() {
	f.t.Helper()
	until(f.t, "the process has looked how much is stored", func() bool {
		return f.processes[0].Metric("pinwheel_stored_bytes", "stream", "account") >= 0.9*float64(f.used())
	})
}

// settled waits until no process holds an event.
func (f *fleet) settled() {
	f.t.Helper()
	until(f.t, "all events have ended", func() bool {
		held := 0.0
		for _, p := range f.processes {
			held += p.Metric("pinwheel_held_events")
		}
		return held == 0
	})
}

// bodyParts: an owner stores parts of bodies that belong to no event, until no owner can store any.
func bodyParts(t *testing.T, f *fleet) (harm string) {
	acme, err := jetstream.New(f.as("acme"))
	require.NoError(t, err)
	beta, err := jetstream.New(f.as("beta"))
	require.NoError(t, err)
	for i, refused := 0, 0; refused < 5 && i < 2000; i++ {
		m := &nats.Msg{Subject: subjects.BodyPart("acme", "id", i), Header: nats.Header{"Nats-Msg-Size": {"1"}},
			Data: make([]byte, 500<<10)}
		if _, err := acme.PublishMsg(t.Context(), m); err != nil {
			refused++
		}
	}
	for try := time.Now(); time.Since(try) < 15*time.Second; <-time.After(100 * time.Millisecond) {
		if _, err = beta.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.BodyPart("beta", "id", 0),
			Data: make([]byte, 500<<10)}); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("a part of a body of beta: %v", err)
}

// delayedEvents: an owner stores large events that run in a year, until the server stores nothing more.
func delayedEvents(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", echoCode, "")
	return f.fill("echo", nats.Header{"Deliver-After": {"8000h"}})
}

// fill has acme fill the storage of the server, and returns the harm to beta. Events that are under way when there is
// no more room make some when they have ended. So acme floods several times.
func (f *fleet) fill(worker string, h nats.Header) (harm string) {
	f.t.Helper()
	js, err := jetstream.New(f.as("acme"))
	require.NoError(f.t, err)
	for i, n := range []int{260, 20, 20, 20} {
		f.flood(js, "acme", worker, h, n)
		until(f.t, "acme's events have ended, or nothing ends any more", func() bool {
			return f.storage(events.StreamEvents) < 1<<20 || f.used() >= 182<<20
		})
		f.looked()
		harm = tryCall(f.t, f.as("beta"), "beta", "echo") + tryDeploy(f, fmt.Sprint("new", i)) + f.unready()
		if harm != "" {
			break
		}
	}
	return harm
}

// flood publishes n events of 800 KB, as fast as the stream accepts them. When the server has hardly any space left,
// flood publishes smaller ones until there is none.
func (f *fleet) flood(js jetstream.JetStream, owner, worker string, h nats.Header, n int) {
	f.t.Helper()
	for _, size := range []int{800 << 10, 30 << 10, 100} {
		m := &nats.Msg{Subject: subjects.Event(events.Task, owner, worker), Header: h,
			Data: []byte(`"` + strings.Repeat("x", size) + `"`)}
		for try := time.Now(); n > 0 && time.Since(try) < 30*time.Second; {
			if _, err := js.PublishMsg(f.t.Context(), m); err == nil {
				n--
			} else if f.used() >= 182<<20 {
				break
			} else {
				<-time.After(10 * time.Millisecond)
			}
		}
		if n == 0 {
			return
		}
		n = 20_000
	}
}

// used returns the number of bytes that the server has stored.
func (f *fleet) used() uint64 {
	f.t.Helper()
	info, err := f.js.AccountInfo(f.t.Context())
	require.NoError(f.t, err)
	return info.Store
}
