package isolates

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// storages is a worker whose events set values that follow code, in every possible way, and look for values of other
// events.
const storages = `
	const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
	const als = new AsyncLocalStorage(), entered = new AsyncLocalStorage(), variable = new AsyncContext.Variable();
	const root = AsyncLocalStorage.snapshot();
	als.enterWith("the module's");
	let last = Promise.resolve(), old;
	const see = () => [als.getStore(), entered.getStore(), variable.get()];
	export default { async task(event) {
		const me = event.payload, found = [];
		const look = (where, ...want) => { const seen = see(); want.forEach((v, i) => { if (seen[i] !== v) found.push(where + " " + i + ": " + seen[i]) }) };
		look("at first", undefined, undefined, undefined);
		entered.enterWith(me);
		await als.run(me, () => variable.run(me, async () => {
			for (let i = 0; i < 4; i++) {
				await sleep((me * 3 + i) % 3);
				look("inside", me, me, me);
				root(() => look("at the root", undefined, undefined, undefined));
				root(() => console.log("line of " + me));
				const before = last;
				last = Promise.withResolvers();
				before.resolve?.("from " + me); // wakes another event
				await Promise.race([last.promise, sleep(2)]);
				look("woken", me, me, me);
			}
			old?.(() => { old = undefined });
			old = AsyncLocalStorage.snapshot();
			setTimeout(() => { look("late", me, me, me) }, 1);
			await sleep(2);
		}));
		look("after", undefined, me, undefined);
		if (me % 3 === 0) als.enterWith("left by " + me);
		return found;
	} }`

// A value that code sets follows that code, and no other event ever sees it.
func TestValuesOfOneEventAreNotAnothers(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		var all []*outcome
		for i := range 30 {
			e := task(fmt.Sprint(i))
			e.ID = fmt.Sprint(i)
			all = append(all, b.start(worker(fmt.Sprint("w", i%2), storages), e))
		}
		for i, o := range all {
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure, "%v", b.lines())
			var doc struct{ Data []string }
			require.NoError(t, json.Unmarshal(o.reply.Body, &doc), "%s", o.reply.Body)
			require.Empty(t, doc.Data, "event %d", i)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Len(t, b.logs, 4*30)
		for _, l := range b.logs {
			require.Equal(t, "line of "+l.EventID, l.Text, "a snapshot of the module's is still the event's that uses it")
		}
	})
}

// A value that is still set when an event's code ends is gone in the next event, whether the event failed or not.
func TestValuesEndWithTheirTurn(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `const als = new AsyncLocalStorage(); export default { fetch(r) {
			const seen = String(als.getStore());
			als.enterWith("left");
			if (r.url.endsWith("boom")) throw new Error(seen);
			if (r.url.endsWith("run")) als.run("ran", () => { als.enterWith("entered"); throw new Error(seen) });
			return new Response(seen);
		} }`)
		for _, path := range []string{"", "boom", "", "run", "", ""} {
			o := b.run(w, fetch("GET", "http://x/"+path, ""))
			if path == "" {
				require.Equal(t, "undefined", string(o.reply.Body))
			} else {
				require.Equal(t, "Error: undefined", o.end.Failure.Message)
				require.Equal(t, events.ReasonException, o.end.Failure.Reason)
			}
		}
	})
}

// Marks and measures belong to an event. Those of the module are visible to all events.
func TestMarksAreAnEvents(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `performance.mark("module");
			export default { async fetch() {
				const names = performance.getEntries().map((e) => e.name).join();
				performance.mark("mine");
				performance.measure("since", "module", "mine");
				await new Promise((done) => setTimeout(done, 2));
				return new Response(names + " " + performance.getEntries().length);
			} }`)
		var all []*outcome
		for range 5 {
			all = append(all, b.start(w, fetch("GET", "http://x/", "")))
		}
		for _, o := range all {
			o.wait(t, o.ended)
			require.Equal(t, "module 3", string(o.reply.Body))
		}
	})
}

// An observer sees the entries of the event that called observe(), and those of no other event, whichever code made the
// observer. An observer of the module sees the module's entries.
func TestObserversAreAnEvents(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `const seen = [], ofModule = [];
			const observer = new PerformanceObserver((list) => seen.push(list.getEntries().map((e) => e.name).join()));
			new PerformanceObserver((list) => ofModule.push(...list.getEntries().map((e) => e.name))).observe({ type: "mark" });
			performance.mark("module");
			export default { async fetch(request) {
				const name = request.url.slice(9);
				const observes = name[0] === "o";
				if (observes) observer.observe({ type: "mark" });
				performance.mark(name);
				await new Promise((done) => setTimeout(done, 2));
				return new Response(ofModule + " " + (seen.includes(name) ? "seen" : "unseen") + " " + observer.takeRecords().length);
			} }`)
		all := map[string]*outcome{}
		for i := range 4 {
			for _, kind := range []string{"o", "n"} {
				name := fmt.Sprint(kind, i)
				all[name] = b.start(w, fetch("GET", "http://x/"+name, ""))
			}
		}
		for name, o := range all {
			o.wait(t, o.ended)
			want := "module seen 0"
			if name[0] == 'n' {
				want = "module unseen 0"
			}
			require.Equal(t, want, string(o.reply.Body), name)
		}
	})
}

// The code that deploy puts into bundles for node:async_hooks works in a worker.
func TestAsyncHooksModule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/bundle/builtin/async_hooks.js")
	require.NoError(t, err)
	code, _, ok := strings.Cut(string(text), "export {")
	require.True(t, ok)
	b := newBench(t)
	b.cpu = ample
	doc := b.task(code+`export default { async task() {
		const als = new AsyncLocalStorage(), said = [];
		const resource = als.run("made here", () => new AsyncResource("KIND"));
		const bound = als.run("bound here", () => AsyncResource.bind(function (a, b) { return [this?.me, als.getStore(), a, b] }));
		await als.run("elsewhere", async () => {
			said.push(resource.type, resource.runInAsyncScope(function (x) { return [this.me, als.getStore(), x] }, { me: 1 }, 2));
			said.push(bound.call({ me: 3 }, 4, 5), bound.length, resource.bind(() => als.getStore())());
			said.push(await resource.runInAsyncScope(async () => { await null; return als.getStore() }), als.getStore());
		});
		for (const f of [() => new AsyncResource(), () => resource.bind(5), () => AsyncResource.bind({})]) try { f(); said.push("no error") } catch (e) { said.push(e.name) }
		return said;
	} }`, "1")
	require.Equal(t, []any{"KIND", []any{1.0, "made here", 2.0}, []any{3.0, "bound here", 4.0, 5.0}, 2.0, "made here",
		"made here", "elsewhere",
		"TypeError", "TypeError", "TypeError"}, doc["data"])
}
