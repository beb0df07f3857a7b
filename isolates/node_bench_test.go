package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkNode measures what node:crypto and node:zlib do synchronously with a megabyte.
func BenchmarkNode(b *testing.B) {
	for name, code := range map[string]string{
		"sha256": `builtin("crypto").createHash("sha256").update(data).digest()`,
		"gzip":   `builtin("zlib").gzipSync(data)`,
		"gunzip": `builtin("zlib").gunzipSync(small)`,
		"small":  `builtin("crypto").createHash("sha256").update("abc").digest("hex")`,
	} {
		b.Run(name, func(b *testing.B) {
			n := newBench(b)
			w := worker("w", `import { builtin } from "pinwheel:node";
				const data = Buffer.alloc(1048576);
				for (let i = 0; i < data.length; i++) data[i] = "the quick brown fox jumps over "[(i * 7 + (i >> 5) * 13) % 31].charCodeAt(0);
				const small = builtin("zlib").gzipSync(data);
				export default { async task(e) { const { n } = await e.json(); for (let i = 0; i < n; i++) `+code+`; } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(60 * time.Second), Wall: workers.Millis(patience)}
			o := n.run(w, task(`{"n":1}`))
			require.Nil(b, o.end.Failure)
			b.SetBytes(1 << 20)
			b.ResetTimer()
			for range b.N {
				require.Nil(b, n.run(w, task(`{"n":20}`)).end.Failure)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/20, "µs/call")
		})
	}
}
