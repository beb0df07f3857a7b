package isolates

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ports that the module makes belong to every event, like its variables. Ports of an event receive nothing after it has
// ended.
func TestPortsBelongToWhoMadeThem(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `
			const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
			const own = new MessageChannel(), heard = [];
			own.port2.onmessage = (e) => own.port2.postMessage("re: " + e.data);
			let old;
			export default { async fetch(r) {
				const me = r.url.slice(-3);
				own.port1.postMessage(me);
				own.port1.start();
				const answer = await new Promise((done) => own.port1.addEventListener("message", (e) => done(e.data), { once: true }));
				old?.postMessage("to an old event");
				const { port1, port2 } = new MessageChannel();
				port2.onmessage = (e) => { heard.push(me + " " + e.data) };
				port1.postMessage("first");
				await sleep(5);
				port1.postMessage("too late");
				old = port1;
				return Response.json([answer, heard.splice(0)]);
			} }`)
		for _, me := range []string{"one", "two", "six"} {
			o := b.run(w, fetch("GET", "http://x/"+me, ""))
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.JSONEq(t, `["re: `+me+`", ["`+me+` first"]]`, string(o.reply.Body))
		}
	})
}

// Channels and object URLs that an event has made end with it. Those of the module belong to every event. Other workers
// cannot see them.
func TestChannelsBelongToWhoMadeThem(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		code := `
			const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
			const own = new BroadcastChannel("asks"), url = URL.createObjectURL(new Blob(["module"]));
			own.onmessage = (e) => own.postMessage("re: " + e.data);
			let old;
			export default { async fetch(r) {
				const me = r.url.slice(-3), mine = new BroadcastChannel("asks"), heard = [];
				mine.onmessage = (e) => heard.push(e.data);
				mine.postMessage(me);
				while (heard.length < 1) await sleep(1);
				await sleep(3);
				old = globalThis.left;
				globalThis.left = URL.createObjectURL(new Blob([me]));
				const text = async (url) => { try { return await (await fetch(url)).text() } catch (e) { return e.name } };
				return Response.json([heard, await text(url), await text(globalThis.left), old === undefined ? "" : await text(old)]);
			} }`
		for _, me := range []string{"one", "two", "six"} {
			for _, name := range []string{"w", "v"} {
				o := b.run(worker(name, code), fetch("GET", "http://x/"+me, ""))
				require.Nil(t, o.end.Failure, "%v", b.lines())
				var got []any
				require.NoError(t, json.Unmarshal(o.reply.Body, &got))
				require.Equal(t, []any{[]any{"re: " + me}, "module", me}, got[:3])
				require.Contains(t, []any{"", "TypeError"}, got[3]) // there is none if each event has its own context
			}
		}
	})
}
