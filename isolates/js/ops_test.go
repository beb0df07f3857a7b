package js

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These files name the op codes: runtime/ops.js; ops.go and offload/subtle/ops.go; and v8x/turn.h, for the calls
// that C++ makes. Each name of one side is on the other side, with the same number.
func TestOpCodesAgree(t *testing.T) {
	theirs := opsOfJS(t)
	for table, in := range map[string]struct{ file, prefix string }{
		"entryOps": {"ops.go", "Op"}, "sendOps": {"ops.go", "Cmd"}, "askOps": {"ops.go", "Ask"},
		"subtleOps": {"../offload/subtle/ops.go", "op"},
	} {
		want := theirs[table]
		require.NotEmpty(t, want, table)
		have := map[string]int64{}
		if table == "entryOps" {
			have = opsOfCPP(t)
		}
		for name, n := range opsOfGo(t, in.file) {
			if rest, ok := strings.CutPrefix(name, in.prefix); ok {
				have[constantCase(rest)] = n
			}
		}
		require.Equal(t, want, have, "internal.%s of runtime/ops.js and the constants %s… of %s", table, in.prefix, in.file)
	}
}

// opsOfGo returns the constants of a file.
func opsOfGo(t *testing.T, path string) map[string]int64 {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	require.NoError(t, err)
	pkg, err := (&types.Config{Importer: importer.Default()}).Check("ops", set, []*ast.File{file}, nil)
	require.NoError(t, err)
	all := map[string]int64{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		require.True(t, ok, "%s is not a constant", name)
		n, exact := constant.Int64Val(c.Val())
		require.True(t, exact, name)
		all[name] = n
	}
	return all
}

var (
	opTable = regexp.MustCompile(`(?s)internal\.(\w+Ops) = \{\s*__proto__: null,(.*?)\};`)
	opEntry = regexp.MustCompile(`(\w+): (\d+)`)
)

// opsOfJS returns the tables of runtime/ops.js.
func opsOfJS(t *testing.T) map[string]map[string]int64 {
	t.Helper()
	source, err := text.ReadFile("runtime/ops.js")
	require.NoError(t, err)
	all := map[string]map[string]int64{}
	for _, table := range opTable.FindAllStringSubmatch(string(source), -1) {
		all[table[1]] = map[string]int64{}
		for _, e := range opEntry.FindAllStringSubmatch(table[2], -1) {
			require.NotContains(t, all[table[1]], e[1], table[1])
			v := constant.MakeFromLiteral(e[2], token.INT, 0)
			all[table[1]][e[1]], _ = constant.Int64Val(v)
		}
	}
	return all
}

var (
	opLine = regexp.MustCompile(`constexpr double (kOp[^;]*);`)
	opCPP  = regexp.MustCompile(`kOp(\w+) = (\d+)`)
)

// opsOfCPP returns the op codes of v8x/turn.h.
func opsOfCPP(t *testing.T) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile("../v8x/turn.h")
	require.NoError(t, err)
	all := map[string]int64{}
	for _, line := range opLine.FindAllStringSubmatch(string(text), -1) {
		for _, e := range opCPP.FindAllStringSubmatch(line[1], -1) {
			all[constantCase(e[1])], _ = constant.Int64Val(constant.MakeFromLiteral(e[2], token.INT, 0))
		}
	}
	require.NotEmpty(t, all)
	return all
}

// constantCase writes fetchAbort and RSAImportParts as JavaScript names constants: FETCH_ABORT, RSA_IMPORT_PARTS.
func constantCase(name string) string {
	var out strings.Builder
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		if upper(i) && i > 0 && (!upper(i-1) || i+1 < len(name) && !upper(i+1) && name[i+1] > '9') {
			out.WriteByte('_')
		}
		out.WriteByte(name[i])
	}
	return strings.ToUpper(out.String())
}
