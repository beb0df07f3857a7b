package isolates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// message is an event of a batch: body and, if there is one, content type.
func message(id, body, contentType string) *lifecycle.Delivery {
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "acme", Worker: "w", ID: id,
		Body: []byte(body), Stored: time.UnixMilli(1700000000000)}, Runs: events.Runs{Attempt: 1}}
	if contentType != "" {
		e.Header = events.Header{"Content-Type": {contentType}}
	}
	return e
}

func messages(n int) (batch []*lifecycle.Delivery) {
	for i := range n {
		batch = append(batch, message(fmt.Sprint(i), fmt.Sprint(i), ""))
	}
	return batch
}

// batch runs a queue handler to its end. js is the body of the handler.
func (b *bench) batch(js string, batch ...*lifecycle.Delivery) *outcome {
	b.t.Helper()
	return b.batchOf(worker("w", "export default { async queue(batch, env, ctx) {"+js+"} }"), batch...)
}

func (b *bench) batchOf(w *workers.Worker, batch ...*lifecycle.Delivery) *outcome {
	b.t.Helper()
	w.Queue = true
	o := b.startBatch(w, batch)
	o.wait(b.t, o.ended)
	require.Nil(b.t, o.reply, "dispatch replies to each event")
	return o
}

// ends says how each event of a batch ended: "ok", "again 3", or the failure, in parentheses if it is that of the run.
func (o *outcome) ends(n int) (list []string) {
	for i := range n {
		end, open := o.end.Of(i)
		switch {
		case end.Failure != nil && open:
			list = append(list, "("+string(end.Failure.Reason)+")")
		case end.Failure != nil:
			list = append(list, end.Failure.Error())
		case end.Retry:
			list = append(list, "again "+fmt.Sprint(end.RetryDelay.Seconds()))
		case end.Interrupted:
			list = append(list, "interrupted")
		default:
			list = append(list, "ok")
		}
	}
	return list
}

func TestBatchHasItsMessages(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		second := message("b", "1", "")
		second.Attempt, second.Header = 3, events.Header{"X-One": {"1"}, "Nats-Msg-Id": {"hidden"}}
		o := b.batch(`
			const of = (m) => [m.id, m.timestamp.getTime(), m.attempts, m.headers.get("x-one"), m.headers.get("nats-msg-id"),
				m.body instanceof ArrayBuffer ? "bytes " + [...new Uint8Array(m.body)] : m.body];
			console.log(JSON.stringify([Object.keys(batch).join(), batch.queue, Array.isArray(batch.messages), batch.metadata, { ...batch.messages[1] }, batch.messages.map(of)]));`,
			message("a", `{"x":[1,"ü"]}`, "application/json"), second, message("c", "42", "text/plain;charset=UTF-8"),
			message("d", "\xff\x00", "application/octet-stream"),
			message("e", "no json", ""), message("f", `"ascii"`, "application/vnd.x+json"), message("g", "", "text/plain"),
			message("h", "\ufeffü", "text/plain"), message("i", "\ufeff[\"ü\"]", "application/json"))
		require.Equal(t, strings.Split(strings.Repeat("ok ", 8)+"ok", " "), o.ends(9), b.lines())
		require.JSONEq(t, `["queue,messages,metadata", "w", true, {"metrics": {"oldestMessageTimestamp": "2023-11-14T22:13:20.000Z"}},
			{"id": "b", "timestamp": "2023-11-14T22:13:20.000Z", "body": 1, "attempts": 3}, [
			["a", 1700000000000, 1, null, null, {"x": [1, "ü"]}], ["b", 1700000000000, 3, "1", null, 1],
			["c", 1700000000000, 1, null, null, "42"], ["d", 1700000000000, 1, null, null, "bytes 255,0"],
			["e", 1700000000000, 1, null, null, "bytes 110,111,32,106,115,111,110"], ["f", 1700000000000, 1, null, null, "ascii"],
			["g", 1700000000000, 1, null, null, ""], ["h", 1700000000000, 1, null, null, "\ufeffü"],
			["i", 1700000000000, 1, null, null, ["ü"]]]]`, b.lines()[0])
	})
}

// TestMessagesDecide: the first call for a message holds, whether it is of the message or of the batch. What is not
// decided ends as the handler does.
func TestMessagesDecide(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		``:                                   "ok, ok, ok",
		`throw 1;`:                           "(exception), (exception), (exception)",
		`m[0].ack(); m[1].retry(); throw 1;`: "ok, again -1, (exception)",
		`m[0].ack(); m[0].retry(); m[1].retry({ delaySeconds: 3 }); m[1].ack();`:            "ok, again 3, ok",
		`m[1].retry({ delaySeconds: 9 }); batch.ackAll(); throw 1;`:                         "ok, again 9, ok",
		`m[1].ack(); batch.retryAll({ delaySeconds: 2 });`:                                  "again 2, ok, again 2",
		`batch.retryAll(); batch.ackAll(); m[2].ack();`:                                     "again -1, again -1, again -1",
		`batch.ackAll(); m[0].retry(); throw 1;`:                                            "ok, ok, ok",
		`m[0].retry({ delaySeconds: -1 });`:                                                 "(exception), (exception), (exception)",
		`await 1; m[0].ack(); await new Promise((f) => setTimeout(f, 5)); throw 1;`:         "ok, (exception), (exception)",
		`ctx.waitUntil((async () => { await 1; m[0].ack(); throw new Error("late"); })());`: "ok, (exception), (exception)",
		`ctx.waitUntil(new Promise((f) => setTimeout(() => { m[1].retry(); f(); }, 5)));`:   "ok, again -1, ok",
		`m[0].ack(); for (;;);`:                                                                       "ok, (cpu), (cpu)",
		`m[0].ack(); await new Promise(() => {});`:                                                    "ok, (timeout), (timeout)",
		`return { batchItemFailures: [{ itemIdentifier: "1" }] };`:                                    "ok, exception: it is in the handler's batchItemFailures, ok",
		`return { batchItemFailures: [{ itemIdentifier: "1" }, { itemIdentifier: "1" }], other: 1 };`: "ok, exception: it is in the handler's batchItemFailures, ok",
		`m[1].ack(); return { batchItemFailures: [{ itemIdentifier: "1" }] };`:                        "ok, ok, ok",
		`return { batchItemFailures: [{ itemIdentifier: "1" }, { itemIdentifier: "7" }] };`:           "(exception), (exception), (exception)",
		`return { batchItemFailures: [{ itemIdentifier: "" }] };`:                                     "(exception), (exception), (exception)",
		`return { batchItemFailures: [{ itemIdentifier: null }] };`:                                   "(exception), (exception), (exception)",
		`return { batchItemFailures: [null] };`:                                                       "(exception), (exception), (exception)",
		`return { batchItemFailures: "1" };`:                                                          "(exception), (exception), (exception)",
		`return { batchItemFailures: [] };`:                                                           "ok, ok, ok",
		`return { batchItemFailures: null };`:                                                         "ok, ok, ok",
		`return { get batchItemFailures() { throw 1 } };`:                                             "(exception), (exception), (exception)",
		`return 5;`: "ok, ok, ok",
		// What a handler replaces changes nothing for the platform.
		`Array.prototype[0] = 1; Object.prototype.then = 0; Object.defineProperty(Object.prototype, "0", { set() { throw 1 } }); Map.prototype.get = null;
		 batch.ackAll.call(batch); throw 1;`: "ok, ok, ok",
		`const { ack } = m[0]; try { ack() } catch (e) { if (!(e instanceof TypeError)) return; m[1].retry() }`:        "ok, again -1, ok",
		`try { new m[0].constructor() } catch { m[1].retry() } try { new batch.constructor() } catch { m[2].retry() }`: "ok, again -1, again -1",
	}
	inModes(t, func(t *testing.T, b *bench) {
		for js, want := range cases {
			w := worker("w", "export default { async queue(batch, env, ctx) { const m = batch.messages; "+js+"} }")
			if strings.Contains(want, "timeout") {
				w.Limits.Wall = workers.Millis(300 * time.Millisecond)
			} else if strings.Contains(want, "cpu") {
				w.Limits = short
			}
			require.Equal(t, want, strings.Join(b.batchOf(w, messages(3)...).ends(3), ", "), "%s\n%s", js, b.lines())
			require.Equal(t, "ok, ok", strings.Join(b.batch("", messages(2)...).ends(2), ", "), "the thread continues")
		}
	})
}

// TestMalformedMessages: the handler does not see a message that is no JSON although it says so.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	bad := message("bad", "{", "application/json")
	o := b.batch(`console.log(batch.messages.map((m) => m.id).join()); throw 1`, message("a", "1", ""), bad, message("c", "3", ""))
	ends := o.ends(3)
	require.Equal(t, []string{"(exception)", "(exception)"}, []string{ends[0], ends[2]})
	require.Contains(t, ends[1], "malformed: SyntaxError")
	require.Equal(t, "a,c", b.lines()[0])

	o = b.batch(`console.log("called")`, bad)
	require.Nil(t, o.end.Failure)
	require.Contains(t, o.ends(1)[0], "malformed: SyntaxError")
	require.NotContains(t, b.lines(), "called", "nothing is left of the batch")
}

func TestBatchWithoutAHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.batchOf(worker("w", `export default { fetch() {} }`), messages(2)...)
	require.Equal(t, events.ReasonNoHandler, o.end.Failure.Reason)
}

// TestLinesOfABatch: a line belongs to an event only if the run has no other one.
func TestLinesOfABatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.batch(`console.log("x")`, messages(2)...)
	b.batch(`console.log("x")`, messages(1)...)
	require.Equal(t, []string{"", "0"}, []string{b.logs[0].EventID, b.logs[1].EventID})
}

// TestNonASCIIBodies: bodies are cut by bytes.
func TestNonASCIIBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.batch(`if (batch.messages.map((m) => m.body).join("|") !== "ä€|b|𝒳") throw new Error(batch.messages.map((m) => m.body).join("|"))`,
		message("1", "ä€", "text/plain"), message("2", "b", "text/plain"), message("3", "𝒳", "text/plain"))
	require.Nil(t, o.end.Failure)
}

func BenchmarkBatch(bm *testing.B) {
	w := worker("w", `export default { queue(batch) { for (const m of batch.messages) m.body.n + 1 }, task(event) { event.payload.n + 1 } }`)
	for _, size := range []int{0, 1, 10, 100} {
		bm.Run(fmt.Sprint(size), func(bm *testing.B) {
			b := newBench(bm)
			batch := make([]*lifecycle.Delivery, max(1, size))
			for i := range batch {
				batch[i] = message(fmt.Sprint(i), `{"n":1,"name":"some name","list":[1,2,3]}`, "application/json")
			}
			bm.ReportAllocs()
			for range bm.N {
				if size == 0 {
					b.run(w, batch[0])
				} else {
					o := b.startBatch(w, batch)
					o.wait(bm, o.ended)
				}
			}
			bm.ReportMetric(float64(bm.Elapsed().Nanoseconds())/float64(bm.N*len(batch)), "ns/event")
		})
	}
}
