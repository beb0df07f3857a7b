package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// Who names a global that others have and workers lack is told why, in what is reported; the error itself stays what V8 makes.
func TestAbsentGlobalsAreExplained(t *testing.T) {
	b := newBench(t)
	for code, want := range map[string]string{
		`new WebAssembly.Memory({ initial: 1 })`: "ReferenceError: WebAssembly is not defined (a worker has none, since nothing bounds the memory that its modules take)",
		`process.env.HOME`:                       "ReferenceError: process is not defined (a worker has no process; variables come as env, the second argument of a handler)",
		`nonesuch()`:                             "ReferenceError: nonesuch is not defined",
	} {
		for _, source := range []string{`export default { task() { ` + code + ` } }`, code + `; export default { task() {} }`} {
			f := b.run(worker("w", source), task("1")).end.Failure
			require.NotNil(t, f)
			require.Equal(t, events.ReasonException, f.Reason)
			require.Equal(t, want, f.Message, source)
		}
	}
	require.Equal(t, []any{"undefined", false, "WebAssembly is not defined"}, b.task(`export default { task() {
		try { WebAssembly.validate(new Uint8Array()) } catch (e) { return [typeof WebAssembly, "WebAssembly" in globalThis, e.message] }
	} }`, "1")["data"])
}
