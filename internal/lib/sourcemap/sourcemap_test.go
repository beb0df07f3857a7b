package sourcemap_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

const source = `interface Item { name: string }

type Unused = number;

export function find(items: Item[]): Item {
  if (items.length === 0) {
    throw new Error("nothing here");
  }
  return items[0]!;
}
`

// bundle makes a real source map, and says where in the code needle stands, as V8 counts.
func bundle(t testing.TB, needle string) (sourceMap []byte, line, column int) {
	t.Helper()
	r := api.Transform(source, api.TransformOptions{
		Loader: api.LoaderTS, Sourcefile: "src/find.ts", Sourcemap: api.SourceMapExternal,
	})
	require.Empty(t, r.Errors)
	for i, text := range strings.Split(string(r.Code), "\n") {
		if c := strings.Index(text, needle); c >= 0 {
			return r.Map, i + 1, c + 1
		}
	}
	t.Fatalf("%q is not in the bundle:\n%s", needle, r.Code)
	return nil, 0, 0
}

func TestStackNamesTheAuthorsLine(t *testing.T) {
	t.Parallel()
	sm, line, column := bundle(t, "new Error")
	m, err := sourcemap.Parse(sm)
	require.NoError(t, err)

	at := fmt.Sprintf("find.js:%d:%d", line, column)
	stack := "Error: nothing here, see find.js:2:11\n" +
		"    at find (" + at + ")\n" +
		"    at " + at + "\n" +
		"    at async Object.fetch [as x] (" + at + ")\n" +
		"    at new Thing (" + at + ")\n" +
		"    at eval (eval at find (" + at + "), <anonymous>:1:1)\n" +
		"    at async Promise.all (index 0)\n" +
		"    at lib/" + at + "\n" +
		"    at find.js:999999:1\n" +
		"    at find.js:99999999999999999999:1\n" +
		"    at other.js:2:11"
	want := "Error: nothing here, see find.js:2:11\n" +
		"    at find (src/find.ts:7:11)\n" +
		"    at src/find.ts:7:11\n" +
		"    at async Object.fetch [as x] (src/find.ts:7:11)\n" +
		"    at new Thing (src/find.ts:7:11)\n" +
		"    at eval (eval at find (src/find.ts:7:11), <anonymous>:1:1)\n" +
		"    at async Promise.all (index 0)\n" +
		"    at lib/" + at + "\n" +
		"    at find.js:999999:1\n" +
		"    at find.js:99999999999999999999:1\n" +
		"    at other.js:2:11"
	require.Equal(t, want, m.Stack("find.js", stack))
	require.Equal(t, want, sourcemap.MapStack(sm, "find.js", stack))

	p, ok := m.Position(line, column)
	require.True(t, ok)
	require.Equal(t, "src/find.ts:7:11", p.String())
}

func TestGarbageLeavesTheStackAlone(t *testing.T) {
	t.Parallel()
	stack := "Error: x\n    at f (a.js:1:1)"
	for _, sm := range []string{
		"", "{", "null", "[]", `{"version":9}`, `{"version":3}`, `{"version":3,"sections":[{}]}`,
		`{"version":3,"sources":[],"mappings":"AAAA"}`,
		`{"version":3,"sources":["a.ts"],"mappings":"AEAAA"}`,
	} {
		require.Equal(t, stack, sourcemap.MapStack([]byte(sm), "a.js", stack), sm)
	}
	var none *sourcemap.Map
	require.Equal(t, stack, none.Stack("a.js", stack))
	_, ok := none.Position(1, 1)
	require.False(t, ok)
}

func FuzzStack(f *testing.F) {
	sm, line, column := bundle(f, "new Error")
	f.Add(string(sm), "find.js", fmt.Sprintf("Error: x\n    at find (find.js:%d:%d)", line, column))
	f.Add(`{"version":3,"sections":[{}]}`, "a.js", "    at a.js:1:1")
	f.Add(`{"version":3,"sources":["a"],"mappings":"AEAA;A"}`, "a.js", "at a.js:1:1a.js:2:2")
	f.Fuzz(func(t *testing.T, sm, file, stack string) {
		out := sourcemap.MapStack([]byte(sm), file, stack)
		if strings.Count(out, "\n") < strings.Count(stack, "\n") {
			t.Fatalf("lines were lost:\n%s\n--\n%s", stack, out)
		}
	})
}

func BenchmarkStack(b *testing.B) {
	sm, line, column := bundle(b, "new Error")
	m, err := sourcemap.Parse(sm)
	require.NoError(b, err)
	stack := "Error: x" + strings.Repeat(fmt.Sprintf("\n    at find (find.js:%d:%d)", line, column), 10)
	for b.Loop() {
		m.Stack("find.js", stack)
	}
}

// What Check lets pass has names that a terminal shows as they are, and costs Parse no more than its size.
func FuzzCheck(f *testing.F) {
	sm, _, _ := bundle(f, "new Error")
	f.Add(sm)
	for _, text := range []string{
		`{"version":3,"sources":["a\u001b"],"mappings":"AAAA"}`, `{"version":3,"sourceRoot":"\u001b","sources":["a"],"mappings":"AAAA"}`,
		`{"version":3,"sections":[{"map":{"version":3,"sources":["\u001b"],"mappings":"AAAA"}}]}`, `{"version":3,"SOURCES":["\n"],"sources":["a"],"mappings":"AAAA"}`,
		`{"version":3,"sources":["a"],"mappings":"AEAA;A"}`, `[[[[`, `null`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, sm []byte) {
		for name := range sourcemap.Texts(sm) {
			if name == "" {
				t.Fatal("a file without a name")
			}
		}
		if sourcemap.Check(sm) != nil {
			return
		}
		m, err := sourcemap.Parse(sm)
		if err != nil {
			t.Fatal(err)
		}
		for line := range 5 {
			for column := range 5 {
				if p, ok := m.Position(line, column); ok && strings.ContainsFunc(p.File,
					func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("%q", p.File)
				}
			}
		}
	})
}
