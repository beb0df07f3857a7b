package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Handlers of all kinds of events use a KV binding. Workers of one owner share a namespace, and those of another do not
// see it.
func TestKVBinding(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	const kv = `{"kv": {"KV": "space"}, "limits": {"cpuMs": 60000}}`
	h.deploy("acme", "w", `export default {
		async task({ payload }, env) { await env.KV.put("k", payload.value, { metadata: { by: "task" } }); return await env.KV.getWithMetadata("k") },
	}`, kv)
	const read = `export default { async fetch(r, env) { return Response.json([await env.KV.get("k"), (await env.KV.list()).keys.length]) } }`
	h.deploy("acme", "reader", read, kv)
	h.deploy("beta", "reader", read, kv)
	require.Contains(t, string(h.reply(h.send(events.Task, "acme/w", `{"value":"v1"}`)).Body),
		`"data":{"value":"v1","metadata":{"by":"task"},"cacheStatus":null}`)
	require.Equal(t, `["v1",1]`, string(h.call("acme/reader").Body))
	require.Equal(t, `[null,0]`, string(h.call("beta/reader").Body))
}

// What an owner stores beyond its bytes is an error of its own.
func TestKVBindingIsBounded(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	const fill = `export default { async fetch(r, env) {
		try { for (let i = 0; i < 100; i++) await env.KV.put("k" + i, "v".repeat(500 * 1024)) } catch (e) { return new Response(e.message) }
		return new Response("all stored");
	} }`
	const manifest = `{"kv": {"KV": "space"}, "limits": {"cpuMs": 60000, "wallMs": 600000}}`
	h.deploy("acme", "w", fill, manifest)
	h.deploy("beta", "w", strings.Replace(fill, "i < 100", "i < 2", 1), manifest)
	require.Contains(t, string(h.call("acme/w").Body), "KV PUT failed: 413 the owner's data would have more bytes")
	require.Equal(t, "all stored", string(h.call("beta/w").Body))
}

// Workers of one owner share a bucket of objects, and those of another do not see it. What a run may hold bounds what
// it puts and gets.
func TestObjectsBinding(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	const manifest = `{"objects": {"R2": "files"}, "limits": {"cpuMs": 60000}}`
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		const kept = await env.R2.put("dir/k", "v".repeat(300000), { httpMetadata: { contentType: "text/css" }, customMetadata: { by: "fetch" } });
		const large = new Uint8Array(10 << 20);
		const all = await Promise.allSettled([1, 2, 3].map((n) => env.R2.put("large" + n, large)));
		return Response.json([kept.size, kept.etag.length, all.find((x) => x.status === "rejected").reason.message]);
	} }`, `{"objects": {"R2": "files"}, "limits": {"heapMB": 24, "cpuMs": 60000}}`)
	const read = `export default { async fetch(r, env) {
		const o = await env.R2.get("dir/k", { range: { suffix: 3 } });
		return Response.json([await o?.text() ?? null, o?.customMetadata, (await env.R2.list({ delimiter: "/" })).delimitedPrefixes]);
	} }`
	h.deploy("acme", "reader", read, manifest)
	h.deploy("beta", "reader", read, manifest)
	require.Regexp(t, `^\[300000,32,".*(limits.heapMB|too much output at once).*"\]$`, string(h.call("acme/w").Body))
	require.Equal(t, `["vvv",{"by":"fetch"},["dir/"]]`, string(h.call("acme/reader").Body))
	require.Equal(t, `[null,null,[]]`, string(h.call("beta/reader").Body))
}

// The largest object is put and got with the default limits of memory.
func TestLargestObject(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	const manifest = `{"objects": {"R2": "files"}, "limits": {"cpuMs": 60000, "wallMs": 300000}}`
	h.deploy("acme", "put", `export default { async fetch(r, env) { return Response.json((await env.R2.put("k", new Uint8Array(25 << 20).fill(7))).size) } }`, manifest)
	h.deploy("acme", "more", `export default { async fetch(r, env) {
		try { await env.R2.put("k", new Uint8Array((25 << 20) + 1)) } catch (e) { return new Response(e.message) }
	} }`, manifest)
	h.deploy("acme", "get", `export default { async fetch(r, env) {
		const o = await env.R2.get("k");
		const all = await o.bytes();
		return Response.json([o.size, all.length, all[0], all.at(-1)]);
	} }`, manifest)
	require.Equal(t, `26214400`, string(h.call("acme/put").Body))
	require.Equal(t, `[26214400,26214400,7,7]`, string(h.call("acme/get").Body))
	require.Equal(t, `put: Your proposed upload of 26214401 bytes exceeds the maximum allowed object size of 26214400. (100100)`, string(h.call("acme/more").Body))
}

// The tasks of a batch reach their worker, each with its body, its type and its headers.
func TestQueueBatch(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "jobs", `export default {
		async task(event, env) { await env.KV.put("task:" + event.headers.get("x-n"), JSON.stringify([event.payload, event.headers.get("content-type")])) },
		async fetch(r, env) {
			const { keys } = await env.KV.list({ prefix: "task:" });
			return Response.json(await Promise.all(keys.map(async ({ name }) => [name, ...await env.KV.get(name, "json")])));
		},
	}`, `{"kv": {"KV": "space"}, "limits": {"cpuMs": 60000}}`)
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		const refused = await env.JOBS.sendBatch([{ body: 1 }, { body: 2, headers: { "Nats-Msg-Id": "x" } }]).catch((e) => e.message);
		await env.JOBS.sendBatch([{ body: { a: 1 }, headers: { "X-N": "1" } }, { body: "true", contentType: "text", headers: { "X-N": "2" } }]);
		await env.JOBS.sendBatch(Array.from({ length: 98 }, (_, i) => ({ body: i, headers: { "X-N": "" + (i + 3) } })));
		return new Response(refused);
	} }`, `{"queues": {"JOBS": "jobs"}, "limits": {"cpuMs": 60000}}`)
	require.Equal(t, "header nats-msg-id: a handler may not set it", string(h.call("acme/w").Body))
	h.settled()
	var tasks [][]any
	require.NoError(t, json.Unmarshal(h.call("acme/jobs").Body, &tasks))
	require.Len(t, tasks, 100)
	require.Contains(t, tasks, []any{"task:1", map[string]any{"a": 1.}, "application/json"})
	require.Contains(t, tasks, []any{"task:2", true, "text/plain;charset=UTF-8"})
	require.Contains(t, tasks, []any{"task:100", 97., "application/json"})
}

// A batch is admitted as a whole, or none of it.
func TestQueueBatchHasARate(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.fleet.SetPolicy("acme", workers.Policy{Sends: 10})
	h.deploy("acme", "w", `export default { task() {}, async fetch(r, env) {
		const batch = (n) => env.SELF.sendBatch(Array(n).fill({ body: 1 })).then(() => "sent", (e) => e.message);
		return Response.json([await batch(9), await batch(9)]);
	} }`, `{"queues": {"SELF": "w"}, "limits": {"cpuMs": 60000}}`)
	require.Equal(t, `["sent","0 of 9 tasks are known to be stored: owner acme may send 10 tasks in a second"]`, string(h.call("acme/w").Body))
	h.settled()
}

// A handler publishes and asks where its manifest and its owner's policy let it, and a narrower policy holds at once.
func TestNATSBinding(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	sub, err := h.nc.SubscribeSync("orders.>")
	require.NoError(t, err)
	_, err = h.nc.Subscribe("billing.pay", func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Data: []byte(`{"paid":` + string(m.Data) + `}`),
			Header: nats.Header{"X-By": []string{"billing"}}})
	})
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	policy := workers.Policy{NATSPublish: []string{"orders.>", "pinwheel.>"}, NATSRequest: []string{"billing.*"}}
	h.fleet.SetPolicy("acme", policy)
	h.policy = policy
	h.deploy("acme", "w", `export default { async fetch(r, env) {
		const said = [];
		const attempt = async (f) => { try { said.push(await f() ?? "sent") } catch (e) { said.push(e.message) } };
		await attempt(() => env.BUS.publish("orders.new", "an order", { headers: { "X-A": "1" } }));
		await attempt(async () => { const reply = await env.BUS.request("billing.pay", 5); return [reply.json(), reply.headers.get("x-by")] });
		await attempt(() => env.BUS.publish("pinwheel.events.task.beta.w", "forged"));
		await attempt(() => env.BUS.publish("elsewhere", "x"));
		return Response.json(said);
	} }`, `{"nats": {"BUS": {"publish": ["orders.*", "pinwheel.>"], "request": ["billing.*"]}}}`)
	require.JSONEq(t,
		`["sent",[{"paid":5},"billing"],"NATS publish failed: 403 subject \"pinwheel.events.task.beta.w\" is one of the fleet's own",
		"NATS publish failed: 403 subject \"elsewhere\" is none of those that the manifest names for BUS"]`, string(h.call("acme/w").Body))
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "orders.new an order 1", m.Subject+" "+string(m.Data)+" "+m.Header.Get("x-a"))

	policy.NATSPublish = nil
	h.fleet.SetPolicy("acme", policy)
	require.Contains(t, string(h.call("acme/w").Body), `403 subject \"orders.new\" is not granted to the owner`)
}
