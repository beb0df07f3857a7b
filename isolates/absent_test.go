package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

const noEval = "a worker runs only the code of its bundle, and neither eval(text) nor new Function(text): import the code, use a closure, or compile templates and schemas before deploy"

// absentNames are globals that other runtimes have and workers lack. Code that tests for them with typeof finds none,
// and takes another way.
var absentNames = []string{
	"SharedArrayBuffer", "Atomics", "Buffer", "process", "require", "Worker",
	"SharedWorker", "importScripts", "XMLHttpRequest", "FileReader", "localStorage", "sessionStorage", "indexedDB",
	"document", "window", "global", "module", "exports",
	"__dirname", "__filename", "Deno", "Bun", "Temporal",
}

func TestAbsentGlobalsAreAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	for _, name := range absentNames {
		got := b.task(`export default { task() { try { `+name+` } catch (e) { return [typeof `+name+`, "`+name+
			`" in globalThis, e.name + ": " + e.message] } } }`, "1")["data"]
		require.Equal(t, []any{"undefined", false, "ReferenceError: " + name + " is not defined"}, got)
		f := b.run(worker("w", `export default { task() { `+name+` } }`), task("1")).end.Failure
		require.NotNil(t, f, name)
		require.Regexp(t, "^ReferenceError: "+name+` is not defined \(.+\)$`, f.Message)
	}
}

// Code that uses a global that other runtimes have and workers lack gets an explanation in the reported error. The
// error itself is the one that V8 makes.
func TestAbsentGlobalsAreExplained(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	for code, want := range map[string]string{
		`process.env.HOME`:  "ReferenceError: process is not defined (a worker has it if its manifest says \"node\": true; variables come as env, the second argument of a handler)",
		`eval("1")`:         "EvalError: Code generation from strings disallowed for this context (" + noEval + ")",
		`new Function("1")`: "EvalError: Code generation from strings disallowed for this context (" + noEval + ")",
		`nonesuch()`:        "ReferenceError: nonesuch is not defined",
	} {
		for _, source := range []string{`export default { task() { ` + code + ` } }`,
			code + `; export default { task() {} }`} {
			f := b.run(worker("w", source), task("1")).end.Failure
			require.NotNil(t, f)
			require.Equal(t, events.ReasonException, f.Reason)
			require.Equal(t, want, f.Message, source)
		}
	}
}
