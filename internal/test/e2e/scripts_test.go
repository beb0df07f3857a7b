package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// scripts are sources in Hoody's way: they hand over no handler, and answer by `return` or by res.
var scripts = map[string]string{
	"only.js":    "// @mode worker\n",
	"default.js": "// @mode serverless  // the same without this\n",
	"count.js": `// @mode worker
shared.seen ??= new Set();
if (!shared.n) {
  shared.n = 0;
}
shared.n++;
shared.seen.add(req.query.who);

return {
  n: shared.n, who: shared.seen.size
};`,
	"fresh.js": `// @mode serverless

if (!shared.n) shared.n = 0;
shared.n++;
return { n: shared.n };`,
	"plain.js": `shared.n = (shared.n ?? 0) + 1;
return shared.n;`,
	"sweep.js": `// @mode worker
if (!shared.kept) shared.kept = new Map();
shared.kept.set(Date.now(), { at: 0 });
for (const [key, { at }] of shared.kept) {
  if (Date.now() - at > 1000) shared.kept.delete(key);
}`,
	"cap.js": `// @mode worker
if (shared.log && shared.log.length > 3) {
  shared.log = shared.log.slice(-1);
}
(shared.log ??= []).push(req.path); res.json(shared.log.length);`,
	"page.js": `// @mode worker
// @websocket
// @cors reflective
res.writeHead(200, { 'Content-Type': 'text/html' });
res.end('<h1>Talk</h1>');
ws.message = (socket, data) => ws.broadcast('all ' + data);
ws.on('message', (socket, data) => socket.send('you ' + data));
ws.close = (socket, code) => console.log(code);`,
	"size.js": `// @mode worker
console.log('open:', ws.connections.size);
return String(ws.connections.size);`,
	"hook.ts": `// hooks/pay.ts
// @mode serverless
// @concurrent false  // one by one
// @cors none
// @log-level full
// @log-request-body true
const signature = req.headers['x-signature'];
if (!signature) {
  res.statusCode = 401;
  return { error: 'no signature' };
}
let event: any;
try {
  event = JSON.parse(req.rawBody.toString());
} catch (err: any) {
  res.statusCode = 400;
  return { error: err.message };
}
switch (event.type) {
  case 'paid': await pay(event); break;
  default: console.log('other', event.type);
}
return { got: event.type, hex: req.rawBody.toString('hex').slice(0, 4) };

async function pay(of: { type: string }) { await new Promise((done) => setTimeout(done, 1)); of.type += '!'; }`,
	"rate.ts": `// @mode worker
// @timeout 5000
const MOST = 2;
const now = Date.now();
let mine = (shared.by ??= new Map()).get(metadata.clientIp);
if (!mine) shared.by.set(metadata.clientIp, mine = []);
if (mine.length >= MOST) {
  res.statusCode = 429;
  res.setHeader('Retry-After', 7);
  res.setHeader('X-Left', 0);
  return { error: 'too many' };
}
mine.push(now);
res.setHeader('X-Left', MOST - mine.length);
return { ok: true, ip: metadata.clientIp !== undefined };`,
	"proxy.js": `// @mode worker
// @log-response-body true
const question = req.body;
if (question.messages?.some((m) => /secret/i.test(m))) {
  res.statusCode = 403;
  return { blocked: true };
}
question.messages.unshift('be brief');
const answer = await fetch('data:application/json,' + encodeURIComponent(JSON.stringify(question)));
return { ...await answer.json(), _seen: question.messages.length };`,
	"flow.js": `res.writeHead(202, 'Going on', ['X-A', 'one', 'Set-Cookie', ['a=1', 'b=2']]);
res.write('one ');
await null;
res.write(new Uint8Array([116, 119, 111]));
setTimeout(() => res.end(' three'), 5);`,
	"form.js": `res.status(req.method === 'POST' ? 201 : 200).set({ 'X-Id': metadata.executionId.slice(0, 5) });
return [req.body.name, req.body.tag, req.cookies.c, req.get('X-One'), req.url];`,
	"none.js": `res.statusCode = 204;
return { ignored: true };`,
	"web.js": `import { greet } from './lib/greet.js';
return new Response(greet(env.WHO ?? 'you'), { status: 418 });`,
	"throw.js": `// @mode worker

if (req.path === '/x')
  missing();
return (function () {
  try { missing(); } catch (err) { return err.stack; }
})();`,
}

func TestScriptsAnswer(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	dir := project(t, "", map[string]string{"lib/greet.js": "export const greet = (who) => `hello ${who}`;"})
	for file, text := range scripts {
		project(t, dir, map[string]string{file: text})
		h.deployDir(filepath.Join(dir, file))
	}
	signed, asJSON := []string{"x-signature", "s"}, []string{"content-type", "application/json"}
	for _, c := range []struct {
		method, worker, path, body string
		header                     []string
		status                     int
		want                       string
	}{
		{"GET", "only", "/", "", nil, 200, ""},
		{"GET", "default", "/", "", nil, 200, ""},
		{"GET", "count", "/?who=a", "", nil, 200, `{"n":1,"who":1}`},
		{"GET", "count", "/?who=b", "", nil, 200, `{"n":2,"who":2}`},
		{"GET", "fresh", "/", "", nil, 200, `{"n":1}`}, {"GET", "fresh", "/", "", nil, 200, `{"n":1}`},
		{"GET", "plain", "/", "", nil, 200, `1`}, {"GET", "plain", "/", "", nil, 200, `1`},
		{"GET", "sweep", "/", "", nil, 200, ""},
		{"GET", "cap", "/", "", nil, 200, "1"}, {"GET", "cap", "/", "", nil, 200, "2"},
		{"GET", "page", "/", "", nil, 200, "<h1>Talk</h1>"}, {"GET", "size", "/", "", nil, 200, "0"},
		{"POST", "hook", "/", "{}", nil, 401, `{"error":"no signature"}`},
		{"POST", "hook", "/", `{"type":"paid"}`, signed, 200, `{"got":"paid!","hex":"7b22"}`},
		{"POST", "hook", "/", `{"type":"x"}`, signed, 200, `{"got":"x","hex":"7b22"}`},
		{"GET", "rate", "/", "", nil, 200, `{"ok":true,"ip":true}`},
		{"GET", "rate", "/", "", nil, 200, `{"ok":true,"ip":true}`},
		{"GET", "rate", "/", "", nil, 429, `{"error":"too many"}`},
		{"POST", "proxy", "/", `{"messages":["a secret"]}`, asJSON, 403, `{"blocked":true}`},
		{"POST", "proxy", "/", `{"messages":["hi"]}`, asJSON, 200,
			`{"messages":["be brief","hi"],"_seen":2}`},
		{"GET", "flow", "/", "", nil, 202, "one two three"},
		{"POST", "form", "/a?b=1", "name=Ada&tag=x&tag=y", []string{"content-type", "application/x-www-form-urlencoded",
			"cookie", "c=d; e=f", "x-one", "1"}, 201, `["Ada",["x","y"],"d","1","/a?b=1"]`},
		{"GET", "none", "/", "", nil, 204, ""}, {"GET", "web", "/", "", nil, 418, "hello you"},
		{"GET", "throw", "/x", "", nil, 500, "exception\n"},
	} {
		resp, text := w.ask(c.method, "acme/"+c.worker, c.path, c.body, c.header...)
		require.Equal(t, c.status, resp.StatusCode, c.worker+text)
		require.Equal(t, c.want, text, c.worker)
	}
	resp, _ := w.ask("GET", "acme/rate", "/", "")
	require.Equal(t, []string{"7", "0"}, []string{resp.Header.Get("Retry-After"), resp.Header.Get("X-Left")})
	resp, _ = w.ask("GET", "acme/flow", "/", "")
	require.Equal(t, []string{"a=1", "b=2"}, resp.Header.Values("Set-Cookie"))

	_, stack := w.ask("GET", "acme/throw", "/", "")
	require.Regexp(t, `^ReferenceError: missing is not defined\n.*throw\.js:6:9\)?\n.*throw\.js:7:1\)?$`, stack)

	one, _ := w.socket("page--acme.w.test/")
	require.NoError(t, one.WriteMessage(websocket.TextMessage, []byte("hi")))
	w.hears(one, "all hi")
	w.hears(one, "you hi")
	require.NoError(t, one.WriteMessage(websocket.BinaryMessage, []byte("bytes")))
	w.hears(one, "all bytes")
}

// Files of fileRoutes are scripts with pre and post around them. Each path has sockets of its own.
func TestScriptsOfRoutes(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deployDir(project(t, "", map[string]string{
		"pinwheel.json":     `{"fileRoutes": "api", "mode": "persistent"}`,
		"api/users/[id].ts": "// @mode worker\nconst { id } = metadata.parameters;\nif (id.length > 3) {\n  res.statusCode = 404;\n  return { error: 'none' };\n}\nshared.hits = (shared.hits ?? 0) + 1;\nreturn { id, by: req.user, hits: shared.hits };",
		"api/users/pre.js":  "if (req.headers['x-stop']) {\n  res.statusCode = 403;\n  return 'stopped';\n}\nreq.user = 'Ada';\nres.setHeader('X-Pre', 'yes');",
		"api/users/post.js": "res.setHeader('X-Post', res.statusCode);",
		"api/chat/[room].ts": `// @mode worker
// @websocket
const { room } = metadata.parameters;
const people = (shared.people ??= new Map());
if (!people.has(room)) people.set(room, new Map());
const here = people.get(room);
res.writeHead(200, { 'Content-Type': 'text/html' });
res.end('<script>const ws = new WebSocket(location.href);</script>' + room + ws.connections.size);
ws.open = (socket) => {
  here.set(socket.data.executionId, socket.data.ip);
  ws.broadcast(JSON.stringify({ type: 'join', room, count: here.size }));
};
ws.message = (socket, data) => ws.broadcast(JSON.stringify({ type: 'text', room, data, known: here.has(socket.data.executionId) }));
ws.close = (socket, code, reason) => {
  here.delete(socket.data.executionId);
  ws.broadcast(JSON.stringify({ type: 'leave', count: here.size, code, reason }));
};`,
	}))
	resp, text := w.ask("GET", "acme/site", "/users/7", "")
	require.Equal(t, `{"id":"7","by":"Ada","hits":1}`, text)
	require.Equal(t, []string{"yes", "200"}, []string{resp.Header.Get("X-Pre"), resp.Header.Get("X-Post")})
	_, text = w.ask("GET", "acme/site", "/users/7", "")
	require.Equal(t, `{"id":"7","by":"Ada","hits":2}`, text)
	resp, text = w.ask("GET", "acme/site", "/users/long", "")
	require.Equal(t, []any{404, `{"error":"none"}`, "404"}, []any{resp.StatusCode, text, resp.Header.Get("X-Post")})
	resp, text = w.ask("GET", "acme/site", "/users/7", "", "x-stop", "1")
	require.Equal(t, []any{403, "stopped", "403"}, []any{resp.StatusCode, text, resp.Header.Get("X-Post")})

	one, _ := w.socket("site--acme.w.test/chat/a")
	w.hears(one, `{"type":"join","room":"a","count":1}`)
	other, _ := w.socket("site--acme.w.test/chat/b")
	w.hears(other, `{"type":"join","room":"b","count":1}`)
	two, _ := w.socket("site--acme.w.test/chat/a")
	w.hears(one, `{"type":"join","room":"a","count":2}`)
	w.hears(two, `{"type":"join","room":"a","count":2}`)
	_, text = w.ask("GET", "acme/site", "/chat/a", "")
	require.Contains(t, text, "a2")
	require.NoError(t, two.WriteMessage(websocket.TextMessage, []byte("hi")))
	for _, c := range []*websocket.Conn{one, two} {
		w.hears(c, `{"type":"text","room":"a","data":"hi","known":true}`)
	}
	bye := websocket.FormatCloseMessage(4001, "bye")
	require.NoError(t, two.WriteControl(websocket.CloseMessage, bye, time.Now().Add(patience)))
	var left struct{ Type, Reason string }
	_, data, err := one.ReadMessage()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &left))
	require.Equal(t, "leave bye", left.Type+" "+left.Reason)
	require.NoError(t, other.WriteMessage(websocket.TextMessage, []byte("b")))
	w.hears(other, `{"type":"text","room":"b","data":"b","known":true}`)
}
