package isolates

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
)

const inflater = `
const zeros = new Uint8Array(1 << 20);
async function bomb(megabytes) {
	const c = new CompressionStream("gzip");
	const w = c.writable.getWriter();
	const out = new Response(c.readable).arrayBuffer();
	for (let i = 0; i < megabytes; i++) await w.write(zeros);
	await w.close();
	return out;
}
let packed;
export default { async task({ payload }) {
	packed ??= await bomb(payload.megabytes);
	const d = new DecompressionStream("gzip");
	const w = d.writable.getWriter();
	const written = w.write(packed).then(() => w.close());
	written.catch(() => {});
	let total = 0;
	for await (const chunk of d.readable) {
		total += chunk.length;
		if (payload.leave) return total;
	}
	return total;
} };`

// Not parallel: other tests have streams under way, and this one sees those too.
func TestDecompressionIsChargedAndEndsWithItsEvent(t *testing.T) {
	b := newBench(t)
	w := worker("inflate", inflater)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second), Wall: workers.Millis(patience)}
	o := b.run(w, task(`{"megabytes":100}`))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), `104857600`)
	require.Greater(t, o.end.CPU, 20*time.Millisecond)
	o = b.run(w, task(`{"megabytes":100,"leave":true}`))
	require.Nil(t, o.end.Failure, "%v", o.end.Failure)
	require.Contains(t, string(o.reply.Body), `65536`)
	w = worker("poor", inflater)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Millisecond), Wall: workers.Millis(patience)}
	o = b.run(w, task(`{"megabytes":1000}`))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	b.close()
	// Nothing of the unfinished streams is left.
	require.Eventually(t, func() bool { return !strings.Contains(allStacks(), "compression.(*Decompressor)") }, patience,
		10*time.Millisecond)
}

func allStacks() string {
	buffer := make([]byte, 1<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

const keepsStream = `
let reader, writer;
export default { async task() {
	if (reader) {
		writer.write(new Uint8Array(10)).catch(() => {});
		try { await reader.read(); return "read"; } catch (e) { return e.name + ": " + e.message; }
	}
	const c = new CompressionStream("gzip");
	writer = c.writable.getWriter();
	reader = c.readable.getReader();
	writer.write(new Uint8Array(10)).catch(() => {});
	await reader.read();
	return "kept";
} };`

func TestAStreamOfAPastEventIsOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("keeps", keepsStream)
	require.Contains(t, string(b.run(w, task("{}")).reply.Body), "kept")
	o := b.run(w, task("{}"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "TypeError: the stream belongs to an event that is over")
}

const sharesStream = `
let reader, writer;
export default { async task({ payload }) {
	if (payload.begin) {
		const c = new CompressionStream("gzip");
		writer = c.writable.getWriter();
		reader = c.readable.getReader();
		writer.write(new Uint8Array(10)).catch(() => {});
		await reader.read();
		await new Promise((done) => { shared.finish = done; });
		return "begun";
	}
	writer.close().catch(() => {});
	const { value } = await reader.read();
	shared.finish();
	return value.length > 0 ? "read by another" : "nothing";
} };`

func TestAStreamIsSharedByConcurrentEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("shares", sharesStream)
	w.Mode = workers.Persistent
	first := b.start(w, task(`{"begin":true}`))
	require.Eventually(t, func() bool {
		return b.pool.holdings.Of("acme") > 0
	}, patience, time.Millisecond)
	o := b.run(w, task(`{}`))
	require.Nil(t, o.end.Failure, "%v", o.end.Failure)
	require.Contains(t, string(o.reply.Body), "read by another")
	first.wait(t, first.ended)
	require.Contains(t, string(first.reply.Body), "begun")
}

// BenchmarkZip measures the cost of compressing and decompressing a body of 2 KB inside a handler.
func BenchmarkZip(bm *testing.B) {
	for name, body := range map[string]string{
		"compress/2K":   `packed = await new Response(new Response(text).body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer()`,
		"decompress/2K": `await new Response(new Response(packed).body.pipeThrough(new DecompressionStream("gzip"))).text()`,
	} {
		bm.Run(name, func(bm *testing.B) {
			b := newBench(bm)
			w := worker("bench", `const text = JSON.stringify(Array.from({ length: 100 }, (_, i) => ({ id: i, name: "n" + i })));
				let packed = await new Response(new Response(text).body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
				export default { async task({ payload }) { for (let i = 0; i < payload; i++) `+body+`; } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(5 * time.Minute), Wall: workers.Millis(5 * time.Minute)}
			b.run(w, task("1"))
			bm.ResetTimer()
			if o := b.run(w, task(fmt.Sprint(bm.N))); o.end.Failure != nil {
				bm.Fatal(o.end.Failure)
			}
		})
	}
}

// Steps of one stream that begin at once, as only hostile code has them begin, are done one at a time, or refused. None
// waits for ever. It is a test of isolates/offload, and here for the same reason as that of its pool.
func TestStepsOfAStreamAtOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(make([]byte, 200<<10))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	p := offload.NewPool(1)
	for i := range 400 {
		z, err := p.NewZip("gzip", i%2 == 0)
		require.NoError(t, err)
		start := make(chan struct{})
		var steps sync.WaitGroup
		for range 8 {
			steps.Go(func() {
				<-start
				z.Step(b.Bytes(), true)
			})
		}
		close(start)
		steps.Wait()
		z.Close()
	}
}
