package isolates

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// pairs is a worker that answers what an expression gives, with a pair of sockets a and b and what each of them gets.
const pairs = `
const seen = (s) => {
	const list = [];
	s.addEventListener("message", ({ data }) => list.push(typeof data === "string" ? data : [...new Uint8Array(data)].join("-")));
	s.addEventListener("close", ({ code, reason, wasClean }) => list.push([code, reason, wasClean].join("|")));
	s.addEventListener("error", () => list.push("error"));
	return list;
};
export default { async fetch() {
	const [a, b] = new WebSocketPair();
	a.binaryType = b.binaryType = "arraybuffer";
	const atA = seen(a), atB = seen(b);
	const settle = async () => { for (let i = 0; i < 20; i++) await scheduler.wait(1); };
	return Response.json(await (async () => { BODY })());
} };`

// The answers are those of workerd with the compatibility date 2026-04-20.
func TestWebSocketPairs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu, b.keeps = ample, true
	for body, want := range map[string]string{
		`const p = new WebSocketPair(); return [[...p][0] === p[0], [...p][1] === p[1], Object.keys(p), [...p].length]`:                                                                                                                             `[true,true,["0","1"],2]`,
		`return Object.values(new WebSocketPair()).map((s) => s.constructor.name)`:                                                                                                                                                                  `["WebSocket","WebSocket"]`,
		`const before = a.readyState; a.accept(); return [before, a.readyState, b.readyState]`:                                                                                                                                                      `[1,1,1]`,
		`a.accept(); return String(a.accept())`:                                                                                                                                                                                                     `"undefined"`,
		`a.accept(); b.accept(); a.send("x"); b.send("y"); b.send(new Uint8Array([1, 2])); await settle(); return [atA, atB]`:                                                                                                                       `[["y","1-2"],["x"]]`,
		`a.accept(); a.send("1"); a.send("2"); await settle(); const none = atB.length; b.accept(); await settle(); return [none, atB]`:                                                                                                             `[0,["1","2"]]`,
		`a.accept(); b.accept(); const bytes = new Uint8Array([1]); a.send(bytes); bytes[0] = 9; await settle(); return atB`:                                                                                                                        `["1"]`,
		`a.accept(); b.accept(); const l = []; b.onmessage = () => l.push("message"); a.send(""); l.push("now"); await null; l.push("then"); await settle(); return l`:                                                                              `["now","then","message"]`,
		`a.accept(); b.accept(); b.send("last"); a.close(4001, "bye"); const now = [a.readyState, b.readyState]; await settle(); return [now, a.readyState, b.readyState, atA, atB]`:                                                                `[[2,1],3,3,["last","4001|bye|true"],["4001|bye|true"]]`,
		`a.accept(); b.accept(); a.close(); await settle(); return [atA, atB]`:                                                                                                                                                                      `[["1005||true"],["1005||true"]]`,
		`a.accept(); b.accept(); a.close(4001, "a"); b.close(4002, "b"); await settle(); return [atA, atB]`:                                                                                                                                         `[["4002|b|true"],["4001|a|true"]]`,
		`a.accept(); a.send("1"); a.close(4000, "r"); await settle(); b.accept(); await settle(); return atB`:                                                                                                                                       `["1","4000|r|true"]`,
		`return [WebSocket.READY_STATE_CONNECTING, WebSocket.READY_STATE_OPEN, a.READY_STATE_CLOSING, a.READY_STATE_CLOSED, a.url]`:                                                                                                                 `[0,1,2,3,null]`,
		`a.accept(); b.accept(); const send = (s) => { try { s.send("x"); return "sent" } catch (e) { return e.constructor.name } }; a.close(); const now = send(a); await settle(); return [now, send(a), send(b), atA, atB]`:                      `["TypeError","TypeError","TypeError",["1005||true"],["1005||true"]]`,
		`a.accept(); b.accept(); b.onmessage = () => b.send("late"); a.send("x"); a.close(4000, "r"); await settle(); return [atA, atB]`:                                                                                                            `[["late","4000|r|true"],["x","4000|r|true"]]`,
		`a.accept(); a.close(); a.close(4000, "x"); return a.readyState`:                                                                                                                                                                            `2`,
		`return [999, 1000, 1001, 1004, 1005, 1006, 1011, 1015, 2999, 3000, 4999, 5000].filter((code) => { const [c] = new WebSocketPair(); c.accept(); try { c.close(code); return true } catch (e) { return e.name !== "InvalidAccessError" } })`: `[1000,1001,1011,2999,3000,4999]`,
		`a.accept(); b.accept(); for (let i = 0; i < 8; i++) a.send("x".repeat(1 << 20)); await new Promise((done) => a.onclose = done); return [a.readyState, b.readyState, atB.at(-1)]`:                                                           `[3,3,"1006||false"]`,
	} {
		w := worker("pairs", strings.Replace(pairs, "BODY", body, 1))
		w.Mode = workers.Persistent
		o := b.run(w, fetch("GET", "http://x.test/", ""))
		require.Nil(t, o.end.Failure, body)
		require.JSONEq(t, want, string(o.reply.Body), body)
	}
}

// A binary message is what the manifest says, and then what binaryType says.
func TestBinaryTypeOfWebSockets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	const code = `export default { async fetch() {
		const [x, y] = new WebSocketPair(), out = [x.binaryType, new WebSocket("ws://x.invalid").binaryType];
		x.accept(); y.accept();
		const kind = async () => {
			const { data } = await new Promise((done) => { y.onmessage = done; x.send(new Uint8Array([7, 8])); });
			out.push(data.constructor.name, ...new Uint8Array(data instanceof Blob ? await data.arrayBuffer() : data));
		};
		await kind();
		y.binaryType = "blob"; await kind();
		y.binaryType = "arraybuffer"; await kind();
		y.binaryType = "text"; out.push(y.binaryType);
		return Response.json(out);
	} };`
	for kind, want := range map[workers.BinaryType]string{
		"":                   `["blob","blob","Blob",7,8,"Blob",7,8,"ArrayBuffer",7,8,"arraybuffer"]`,
		workers.BinaryBlob:   `["blob","blob","Blob",7,8,"Blob",7,8,"ArrayBuffer",7,8,"arraybuffer"]`,
		workers.BinaryBuffer: `["arraybuffer","arraybuffer","ArrayBuffer",7,8,"Blob",7,8,"ArrayBuffer",7,8,"arraybuffer"]`,
	} {
		w := worker("binary"+string(kind), code)
		w.Mode, w.BinaryType = workers.Persistent, kind
		o := b.run(w, fetch("GET", "http://x.test/", ""))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t, want, string(o.reply.Body))
	}
}
