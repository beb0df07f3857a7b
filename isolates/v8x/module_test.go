package v8x

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const cached = `
export default () => inner();
function inner() { throw new Error("here"); }
export function unused() { return 1 }
`

func TestCodeCache(t *testing.T) {
	_, c := newContext(t, roomy)
	require.Nil(t, c.CodeCache()) // no module yet
	state, r := c.Module(Source{Name: "m.js", Text: cached})
	require.Equal(t, Evaluated, state)
	out := string(r.Out)
	early := c.CodeCache()
	require.NotEmpty(t, early)
	require.Equal(t, out, string(r.Out)) // what the module sent is still there
	var call Call
	require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "m.js:3:20: Uncaught Error: here")
	late := c.CodeCache()
	require.Greater(t, len(late), len(early)) // inner was compiled

	for _, code := range [][]byte{early, late} {
		_, c := newContext(t, roomy)
		state, _ := c.Module(Source{"m.js", cached, code})
		require.Equal(t, Evaluated, state)
		require.False(t, c.CacheRejected())
		require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "m.js:3:20: Uncaught Error: here")
	}
}

func TestCodeCacheRejected(t *testing.T) {
	_, c := newContext(t, roomy)
	c.Module(Source{Name: "m.js", Text: cached})
	code := c.CodeCache()
	for name, s := range map[string]Source{
		"another text": {"m.js", cached + " ", code},
		"cut":          {"m.js", cached, code[:len(code)-8]},
		"nonsense":     {"m.js", cached, []byte("nonsense")},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := newContext(t, roomy)
			state, _ := c.Module(s)
			require.Equal(t, Evaluated, state)
			require.True(t, c.CacheRejected())
			require.NotEmpty(t, c.CodeCache())
		})
	}
}

func TestCodeCacheOfAPendingModule(t *testing.T) {
	_, c := newContext(t, roomy)
	state, _ := c.Module(Source{Name: "m.js", Text: `await new Promise(() => {})`})
	require.Equal(t, Pending, state)
	require.NotEmpty(t, c.CodeCache())
	_, c = newContext(t, roomy)
	state, _ = c.Module(Source{Name: "m.js", Text: `let let`})
	require.Equal(t, CompileError, state)
	require.Nil(t, c.CodeCache())
}
