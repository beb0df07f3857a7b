package isolates

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/js"
)

// traits describe what the events of a worker see of each other in an execution mode. The modes differ in nothing else.
type traits struct {
	mode   workers.Mode
	keeps  bool // a context, and all that a module keeps in it, outlives an event
	shares bool // events of a worker that run at the same time are in one context
}

func modes() []traits {
	return []traits{
		{workers.Pinned, true, false},
		{workers.Shared, true, false},
		{workers.Oneshot, false, false},
		{workers.Persistent, true, true},
	}
}

// relation is how the worker that searches is related to the one that left something.
type relation struct {
	name string
	same bool // the same version of the same worker: only the event differs
	to   func(w *workers.Worker)
}

func relations() []relation {
	return []relation{
		{"event", true, func(*workers.Worker) {}},
		{"version", false, func(w *workers.Worker) { w.Version, w.Number = "2-test", 2 }},
		{"worker", false, func(w *workers.Worker) { w.Name = "other" }},
		{"owner", false, func(w *workers.Worker) { w.Owner = "rival" }},
		{"owner of the group", false, func(w *workers.Worker) { w.Owner = "friend" }},
	}
}

// crossing is something that one event leaves behind, and the search for it in another: find returns what it found.
type crossing struct {
	leave, find string
	// Whether a later event of the same context finds it; whether one that runs at the same time does.
	after, beside bool
}

// crossings are all things that workers may leave behind. In leave and find, token is the event's, and hold() is a
// promise that the test settles.
func crossings() map[string]crossing {
	return map[string]crossing{
		"global":          {`globalThis.mark = env.WHO`, `return globalThis.mark`, true, true},
		"shared":          {`shared.mark = env.WHO`, `return shared.mark`, false, true},
		"registered name": {`globalThis[Symbol.for("mark")] = env.WHO`, `return globalThis[Symbol.for("mark")]`, true, true},
		"module state":    {`state = env.WHO`, `return state`, true, true},
		"prototypes":      {`for (const C of [Object, Array, Function, Promise, Request, Headers]) C.prototype.mark = env.WHO`, `return ({}).mark ?? request.mark`, true, true},
		"marks everywhere": {
			`const key = Symbol.for("mark"); let n = 0; walk(samples(request, env, ctx), (path, v) => { try { v[key] = env.SECRET; n++ } catch {} }); if (n < 1000) throw new Error(n)`,
			`let found; const key = Symbol.for("mark");
			walk(samples(request, env, ctx), (path, v) => { for (const k of Reflect.ownKeys(v)) {
				const { value } = Reflect.getOwnPropertyDescriptor(v, k);
				if (k === key || typeof value === "string" && value.includes("secret of") && value !== env.SECRET) found = path;
			} }); return found`, true, true},
		"patched functions": {
			`for (const [o, k] of [[Promise.prototype, "then"], [Array.prototype, Symbol.iterator], [JSON, "stringify"], [Function.prototype, "call"], [globalThis, "fetch"], [Map.prototype, "get"]]) { const f = o[k]; o[k] = function (...a) { return Reflect.apply(f, this, a) } }
			Object.defineProperty(Promise, Symbol.species, { get: () => class Evil extends Promise {} })`,
			`return [Promise.prototype.then, Array.prototype[Symbol.iterator], JSON.stringify, Function.prototype.call, fetch, Map.prototype.get].filter((f) => f.toString().includes("Reflect.apply")).length || Promise[Symbol.species] !== Promise ? "patched" : ""`, true, true},
		"frozen":        {`Object.freeze(Array.prototype); delete globalThis.structuredClone`, `return Object.isFrozen(Array.prototype) || typeof structuredClone === "undefined" ? "frozen" : ""`, true, true},
		"error hooks":   {`Error.stackTraceLimit = 3; Error.prepareStackTrace = () => env.SECRET`, `return (Error.stackTraceLimit !== 20 ? "limit" : "") + (Error.prepareStackTrace.length === 2 ? "" : "prepare")`, true, true},
		"RegExp.$1":     {`/(mark)/.exec("mark")`, `return RegExp.$1`, true, true},
		"listeners":     {`addEventListener("error", (e) => { globalThis.heard = env.WHO; e.preventDefault() })`, `reportError(new Error("LINE " + line)); return globalThis.heard`, true, true},
		"env":           {`for (const f of [() => { env.mark = 1 }, () => { env.JOBS.mark = 1 }, () => Object.setPrototypeOf(env, { mark: 1 }), () => Object.defineProperty(env, "WHO", { value: "x" }), () => { delete env.WHO }]) try { f() } catch {}`, `return env.mark ?? env.JOBS.mark ?? (Reflect.ownKeys(env).sort().join() === "JOBS,SECRET,WHO" ? "" : "keys")`, false, false},
		"console":       {`console.group(); console.group(); console.count("mark"); console.time("mark"); console.groupEnd()`, `console.timeEnd("mark"); console.count("mark")`, false, false},
		"request":       {`globalThis.request = request`, `return globalThis.request?.clone().text()`, true, true},
		"ctx":           {`globalThis.ctx = ctx`, `try { globalThis.ctx?.waitUntil(1); return globalThis.ctx && "taken" } catch (e) { return e.name === "InvalidStateError" ? "" : String(e) }`, false, true},
		"ports":         {`const { port1, port2 } = globalThis.channel = new MessageChannel(); port2.onmessage = () => { globalThis.mail = env.WHO }; port1.postMessage(1)`, `globalThis.channel?.port1.postMessage(2); return until(() => globalThis.mail)`, false, true},
		"broadcast":     {`const c = new BroadcastChannel("mark"); c.onmessage = () => c.postMessage(env.WHO)`, `const c = new BroadcastChannel("mark"), got = new Promise((done) => { c.onmessage = (e) => done(e.data) }); let mail; got.then((m) => { mail = m }); c.postMessage("who?"); return until(() => mail)`, false, true},
		"object URLs":   {`globalThis.object = URL.createObjectURL(new Blob([env.WHO]))`, `return globalThis.object && fetch(globalThis.object).then((r) => r.text(), () => "")`, false, true},
		"timers":        {`setTimeout(() => { globalThis.late = 1; console.log("LINE " + line) }, 3); setInterval(() => { globalThis.late = 2 }, 2)`, `return until(() => globalThis.late)`, false, true},
		"timers reject": {`setTimeout(() => { Promise.reject(new Error("LINE " + line)); globalThis.late = 1; throw new Error("LINE " + line) }, 3)`, `return until(() => globalThis.late)`, false, true},
		"waitUntil":     {`ctx.waitUntil(sleep(3).then(() => { globalThis.waited = 1; console.log("LINE " + line) }))`, `return until(() => globalThis.waited)`, true, true},
		"signal":        {`globalThis.signal = AbortSignal.timeout(3); signal.onabort = () => { globalThis.aborted = 1 }`, `return until(() => globalThis.aborted || globalThis.signal?.aborted)`, false, true},
		"stream":        {`new ReadableStream({ async pull(c) { await sleep(3); c.enqueue(env.WHO) } }).getReader().read().then(({ value }) => { globalThis.read = value })`, `return until(() => globalThis.read)`, false, true},
		"fetch":         {`for (let i = 0; i < 3; i++) hold().then((text) => { globalThis.answered = text }, () => { globalThis.answered = "failed" })`, `if (await answer("/now") !== token) return "another's answer"; return globalThis.answered`, false, false},
		"body":          {`globalThis.reader = (await fetch(BASE + "/body?" + token)).body.getReader()`, `return globalThis.reader && Promise.race([sleep(15).then(() => ""), globalThis.reader.read().then(({ value }) => value && "data", () => "")])`, false, false},
		"work":          {`const work = crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(8), iterations: 1000 }, await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]), 256).then(() => { globalThis.worked = 1 }); if (request.headers.get("beside") !== null) await work`, `return until(() => globalThis.worked)`, false, true},
		"compression":   {`const work = new Response(new Response("x".repeat(1e5)).body.pipeThrough(new CompressionStream("gzip"))).bytes().then(() => { globalThis.zipped = 1 }); if (request.headers.get("beside") !== null) await work`, `return until(() => globalThis.zipped)`, false, true},
		"cookies":       {`await answer("/cookie")`, `const h = JSON.parse(await answer("/headers")); return Object.keys(h).filter((k) => /cookie|auth|referer|origin/i.test(k)).join()`, false, false},
		"context":       {`(globalThis.als ??= new AsyncLocalStorage()).enterWith(env.WHO)`, `return globalThis.als?.getStore()`, false, false},
		"sends":         {`for (let i = 0; i < 3; i++) env.JOBS.send(line); await env.JOBS.send(line)`, `await env.JOBS.send(line); await env.JOBS.send(line); return globalThis.sent`, false, false},
	}
}

const crossingModule = `
let state;
export default { async fetch(request, env, ctx) {
	const token = request.headers.get("token"), line = env.WHO + " " + token + ".";
	const answer = (path) => fetch(BASE + path + "?" + token).then((r) => r.text()), hold = () => answer("/hold");
	if (request.method === "PUT") {
		{ LEAVE }
		if (request.headers.get("beside") !== null) await answer("/hold");
		return new Response("left " + line);
	}
	const until = async (read) => {
		for (let n = 0, got; n < ROUNDS; n++) {
			if ((got = read())) return got;
			await sleep(3);
		}
	};
	const found = await (async () => { FIND })();
	return Response.json({ found: found ? String(found) : "", line });
} };
`

// isolationBench is a bench that records who sent what, with a server for its workers.
type isolationBench struct {
	*bench
	server  *httptest.Server
	holds   chan struct{} // one for each request that is held
	release chan struct{} // closed when they must be answered
	sends   []string      // owner, worker and body
}

func newIsolationBench(t *testing.T, change ...func(*Config)) *isolationBench {
	t.Helper()
	c := &isolationBench{bench: &bench{seen: map[*lifecycle.Attempt]*outcome{}}}
	c.begin(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/now", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.RawQuery)) })
	mux.HandleFunc("/hold", func(w http.ResponseWriter, r *http.Request) {
		c.hold(r)
		_,
			_ = w.Write([]byte(r.URL.RawQuery))
	})
	mux.HandleFunc("/body", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		c.hold(r)
		_, _ = w.Write([]byte("body"))
	})
	mux.HandleFunc("/cookie", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "mark", Value: "1", Path: "/"})
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(r.Header) })
	c.server = httptest.NewServer(mux)
	cfg := DefaultConfig(1)
	loopback(&cfg)
	for _, f := range change {
		f(&cfg)
	}
	c.pool = newPool(t, cfg, c, c)
	require.NoError(t, c.pool.Open())
	for _, owner := range []string{"acme", "friend"} {
		c.pool.SetPolicy(owner, workers.Policy{Group: "group"})
	}
	t.Cleanup(sync.OnceFunc(func() { c.pool.Close(); c.server.Close() }))
	return c
}

func (c *isolationBench) hold(r *http.Request) {
	c.mu.Lock()
	holds, release := c.holds, c.release
	c.mu.Unlock()
	holds <- struct{}{}
	select {
	case <-release:
	case <-r.Context().Done():
	}
}

func (c *isolationBench) Enqueue(_ context.Context, owner, worker string, tasks []Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sends = append(c.sends, owner+" "+worker+" "+string(tasks[0].Body))
	return nil
}

// who formats the name of a version of a worker.
func who(owner, worker, version string) string { return owner + "/" + worker + "@" + version }

func parts(t testing.TB, names ...string) string {
	t.Helper()
	var code strings.Builder
	for _, name := range names {
		text, err := os.ReadFile("testdata/isolation/parts/" + name + ".js")
		require.NoError(t, err)
		code.Write(text)
	}
	return code.String()
}

// walkPart is parts/walk.js, which needs the names of the C++ functions that the runtime has.
func walkPart(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("v8x/natives.cc")
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`\{"(\w+)", +[A-Z]\w+\}`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	require.Subset(t, names, []string{"send", "ask", "entry"})
	list, err := json.Marshal(names)
	require.NoError(t, err)
	return "const NATIVES = " + string(list) + ";\n" + parts(t, "walk")
}

// worker is a worker of acme, or of the owner that change sets.
func (c *isolationBench) worker(m traits, code string, change func(*workers.Worker)) *workers.Worker {
	w := worker("w", walkPart(c.t)+fmt.Sprintf("const BASE = %q, { fetch } = globalThis, sleep = (ms) => new Promise((done) => setTimeout(done, ms));\n", c.server.URL)+code)
	change(w)
	w.Mode, w.Limits.CPU = m.mode, workers.MaxLimits.CPU
	name := who(w.Owner, w.Name, w.Version)
	w.Hash = name + code
	w.Vars = map[string]string{"WHO": name, "SECRET": "secret of " + name}
	w.Queues = map[string]string{"JOBS": "jobs-of-" + w.Owner}
	return w
}

func (c *isolationBench) event(method, token string, beside bool) *lifecycle.Delivery {
	e := fetch(method, "http://x/", "body of "+token)
	e.ID, e.HTTPHeaders = token, []string{"token", token}
	if beside {
		e.HTTPHeaders = append(e.HTTPHeaders, "beside", "yes")
	}
	return e
}

// TestNothingCrosses leaves every kind of thing behind in an event, and searches for it in another: of the same worker,
// of another version of it, of another worker of the owner, of another owner and of one whose isolates it shares, after
// the first has ended and while it runs. All of them run on one thread. Without the tag `hostile` each pair of events
// gets a tenth of the things, other ones in each run.
func TestNothingCrosses(t *testing.T) {
	t.Parallel()
	all := crossings()
	names := slices.Sorted(maps.Keys(all))
	for _, m := range modes() {
		for _, r := range relations() {
			for when, beside := range map[string]bool{"after": false, "beside": true} {
				t.Run(fmt.Sprintf("%s/%s/%s", m.mode, r.name, when), func(t *testing.T) {
					t.Parallel()
					c := newIsolationBench(t)
					for _, name := range sampled(t, names, len(names)/10) {
						x := all[name]
						want := r.same && (!beside && x.after && m.keeps || beside && x.beside && m.shares)
						want = want || r.same && name == "shared" && m.shares // sharing is its purpose
						t.Run(name, func(t *testing.T) {
							c.begin(t)
							c.cross(m, x, r, beside, want)
						})
					}
				})
			}
		}
	}
}

// begin prepares a bench for the next case.
func (c *isolationBench) begin(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t, c.logs, c.sends = t, nil, nil
	c.holds, c.release = make(chan struct{}, 100), make(chan struct{})
}

func (c *isolationBench) cross(m traits, x crossing, r relation, beside, want bool) {
	rounds := "5"
	if want { // it may take long on a busy machine
		rounds = "5000"
	}
	code := strings.NewReplacer("LEAVE", x.leave, "FIND", x.find, "ROUNDS", rounds).Replace(crossingModule)
	first, second := c.worker(m, code, func(*workers.Worker) {}), c.worker(m, code, r.to)
	left := c.start(first, c.event("PUT", "one", beside))
	if beside {
		left.wait(c.t, c.holds)
	} else {
		left.wait(c.t, left.ended)
		require.Nil(c.t, left.end.Failure)
	}
	for _, token := range []string{"two", "three"} {
		o := c.run(second, c.event("POST", token, false))
		require.Nil(c.t, o.end.Failure, "%v", c.lines())
		var doc struct{ Found, Line string }
		require.NoError(c.t, json.Unmarshal(o.reply.Body, &doc), "%s", o.reply.Body)
		require.Equal(c.t, want, doc.Found != "", "found %q", doc.Found)
		require.Equal(c.t, who(second.Owner, second.Name, second.Version)+" "+token+".", doc.Line)
	}
	close(c.release)
	left.wait(c.t, left.ended)
	require.Nil(c.t, left.end.Failure)
	require.Equal(c.t, "left "+who(first.Owner, first.Name, first.Version)+" one.", string(left.reply.Body))
	c.checkLines(m, r.same)
}

// checkLines checks whether each line of output and each send names its true event. Events that share a context share
// the groups and counts of its console.
func (c *isolationBench) checkLines(m traits, same bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.logs {
		name := who(l.Owner, l.Worker, l.Version)
		if _, text, ok := strings.Cut(l.Text, "LINE "); ok {
			require.Equal(c.t, name+" "+l.EventID+".", text)
		}
		if strings.Contains(l.Text, "mark: ") && (l.EventID == "two" && !(same && m.shares) || l.EventID == "three" &&
			!m.shares) {
			require.Equal(c.t, "mark: 1", l.Text, "groups and counts of another event")
		}
		require.NotContains(c.t, l.Text+l.Stack, js.Prefix)
		require.NotContains(c.t, strings.ReplaceAll(l.Text+l.Stack, "secret of "+name, ""), "secret of")
	}
	for _, s := range c.sends {
		part := strings.SplitN(s, " ", 3)
		require.Equal(c.t, "jobs-of-"+part[0], part[1])
		require.True(c.t, strings.HasPrefix(part[2], part[0]+"/"), s)
	}
}
