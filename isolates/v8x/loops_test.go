package v8x

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Loops in which V8's top compiler leaves no stack check: with it nothing could end them (docs/development/adr/0005).
// They run in their own process, which can be ended. They run long enough for the best available compiler to compile
// them.
func TestLoopsEnd(t *testing.T) {
	const child = "V8X_LOOP"
	if body := os.Getenv(child); body != "" {
		iso, c := newContext(t, Limits{Heap: 32 << 20, Buffers: 32 << 20})
		c.Module(Source{Name: "m.js", Text: `export default () => { ` + body + ` }`})
		over := make(chan struct{})
		time.AfterFunc(2*time.Second, func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(100 * time.Millisecond):
					iso.Terminate()
				}
			}
		})
		var call Call
		require.True(t, c.Call(call.Reset(50).Bytes(), nil).Terminated)
		close(over)
		return
	}
	for _, body := range []string{
		`let a; for (;;) { a = new Array(1000).fill(1.5) }`,
		`let a; for (;;) { a = new Array(100).fill(1.5) }`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestLoopsEnd$")
		cmd.Env = append(os.Environ(), child+"="+body)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s does not end: %s", body, out)
	}
}
