package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// overhearer notes the subjects of all messages that have a mark.
type overhearer struct {
	mark []byte

	mu       sync.Mutex
	subjects map[string]bool
}

func (o *overhearer) hear(m *nats.Msg) {
	found := bytes.Contains(m.Data, o.mark)
	for name, values := range m.Header {
		found = found || bytes.Contains([]byte(fmt.Sprint(name, values)), o.mark)
	}
	if !found {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subjects[m.Subject] = true
}

// Whatever a worker hands over, it reaches the events of its owner, its logs and those who wait for its replies: no
// API, no feed of a tail, no control endpoint, no API of JetStream, and no other owner.
func TestGuestsReachNoOwnerAPI(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	const mark = "MARK7f3a"
	over := &overhearer{mark: []byte(mark), subjects: map[string]bool{}}
	h.deploy("acme", "sink", `export default { task() {} };`)
	h.deploy("acme", "w", fmt.Sprintf(`const M = %q;
		const targets = ["pinwheel.owner.beta.dead.purge", "pinwheel.feed.beta.0123456789abcdef", "pinwheel.control.drain", "pinwheel.control.leases", "pinwheel.audit.beta.door",
			"$JS.API.STREAM.DELETE.PINWHEEL_EVENTS", "$KV.PINWHEEL_WORKERS.beta.w", "$SRV.PING", "pinwheel.events.task.beta.w", "pinwheel.call.task.beta.w", "beta/w", "../beta", ">"];
		const steering = ["Reply-To", "Nats-Msg-Id", "Body-Credit", "Subject", "Nats-Schedule-Target", "Nats-Schedule", "Nats-Rollup", "Worker-Version", "Dead-Of", "X\r\nReply-To", "Status"];
		export default {
			async task(event, env, ctx) {
				const said = {};
				const attempt = async (f) => { try { await f(); said.sent = (said.sent ?? 0) + 1 } catch (e) { said[e.name] = (said[e.name] ?? 0) + 1 } };
				for (const to of targets) {
					for (const name of steering) await attempt(() => env.JOBS.send(M, { headers: { [name]: to } }));
					await attempt(() => env.JOBS.send(M, { headers: { [to]: M } }));
					await attempt(() => env.JOBS.send(M, { contentType: to }));
					await attempt(() => Object.getPrototypeOf(env.JOBS).send.call({ worker: to }, M));
					await attempt(() => env.JOBS.send.call(Object.assign(Object.create(env.JOBS), { worker: to, subject: to }), M));
					console.log(M, to);
				}
				return { M, targets, replyTo: targets[0], subject: targets[0], said };
			},
			fetch: () => new Response(M, { headers: Object.fromEntries(steering.filter((n) => !n.includes("\r")).map((n, i) => [n, targets[i]])) }),
			// A failure is told to the publisher, the log and the dead letters.
			scheduled() { throw Object.assign(new Error(M), { subject: targets[0], replyTo: targets[0] }) },
		};`, mark), `{"queues": {"JOBS": "sink"}, "retries": {"maxAttempts": 1}, "limits": {"cpuMs": 30000}}`)
	_, err := h.nc.Subscribe(">", over.hear) // the deploy has the mark, too
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	reply := h.reply(h.send(events.Task, "acme/w", "{}"))
	require.Contains(t, string(reply.Body), `"sent":`, "some were sent, to its own queue")
	require.Equal(t, mark, string(h.reply(h.send(events.Fetch, "acme/w", "")).Body))
	h.reply(h.send(events.Scheduled, "acme/w", "{}"))
	h.settled()
	require.NoError(t, h.nc.Flush())
	over.mu.Lock()
	defer over.mu.Unlock()
	may := regexp.MustCompile(`^(pinwheel\.events\.(\d+\.)?task\.acme\.sink|pinwheel\.logs\.acme\.(w|sink)|pinwheel\.dead\.acme\..*|pinwheel\.events\.dead\..*|_INBOX\..*)$`)
	for subject := range over.subjects {
		require.Regexp(t, may, subject)
	}
	require.NotEmpty(t, over.subjects)
}
