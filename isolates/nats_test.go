package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func natsWorker(code string) *workers.Worker {
	w := worker("w", code)
	w.NATS = map[string]workers.NATSSubjects{"BUS": {Publish: []string{"a"}}}
	return w
}

// A binding passes on what it was given: the bench answers with the arguments.
func TestNATSBinding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(natsWorker(`export default { async fetch(r, env) {
		const { BUS } = env;
		const reply = await BUS.request("a.b", { x: 1 }, { timeoutMs: 1.5, headers: { "X-A": "1" } });
		const refused = [];
		for (const f of [() => BUS.publish(), () => BUS.request(), () => BUS.publish("a", () => 1), () => BUS.publish("a", 1n), () => BUS.publish("a", "x", 5), () => BUS.request("a", "", { timeoutMs: NaN }),
			() => BUS.publish("a", "x", { headers: { "a b": "c" } }), () => BUS.publish.call({}, "a"), () => new BUS.constructor({}, "X"), () => BUS.publish(Symbol()), () => Object.create(reply).text()]) {
			try { await f(); refused.push("sent") } catch (e) { refused.push(e.constructor.name) }
		}
		return Response.json([reply.text(), new TextDecoder().decode(reply.bytes()) === reply.text(), refused.join(), Object.isFrozen(BUS)]);
	} }`), fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	const all = "TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError,TypeError"
	require.JSONEq(t, `["acme/nats/{\"publish\":[\"a\"]}.request(a.b,1.5,x-a,1)",true,"`+all+`",true]`, string(o.reply.Body))
}

// A run that calls 10 000 times at once has its 50 calls, 6 at once, and the others fail.
func TestNATSBudget(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := natsWorker(`export default { async fetch(r, env) {
		const all = await Promise.allSettled(Array.from({ length: 10000 }, () => env.BUS.request("a")));
		const failed = all.filter((x) => x.status === "rejected");
		return Response.json([all.length - failed.length, failed[0].reason.message]);
	} }`)
	w.Limits.CPU = workers.Millis(60e9)
	o := b.run(w, fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.JSONEq(t, `[50, "too many calls of nats bindings: at most 50 per event"]`, string(o.reply.Body))
	require.LessOrEqual(t, b.mostCalling, 6)
	b.holdsNothing()
}
