package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Ports that the module makes are every event's, as its variables are; those of an event are deaf when it is over.
func TestPortsBelongToWhoMadeThem(t *testing.T) {
	inModes(t, func(t *testing.T, b *bench) {
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
