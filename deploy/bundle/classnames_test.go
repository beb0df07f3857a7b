package bundle_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

// Classes have the names that they have in the sources, whatever esbuild calls them. No place of the source map moves.
func TestBuildKeepsNamesOfClasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/other.ts", `export class Dup { static self = Dup; } class Quiet {} export const quiet = Quiet;
class Base {} export const mixin = (options: object) => Base;`)
	path := write(t, dir+"/w.ts", strings.ReplaceAll(`import { quiet, mixin } from "./other"; import * as other from "./other";
/* ü 😀 */ export class PaymentError extends Error { static code = 402; constructor() { super(String(PaymentError.code)); } }
abstract class Dup extends other.Dup { static name2 = "x"; copy() { return Dup; } }
class Quiet {}
class Model extends mixin({
  a: "}", b: [1, { c: "(" }],
}) { make() { return new Model(); } }
class Plain extends Error {}
const _mine = class _Own { copy() { return _Own; } };
const text = ~
var Fake = class _Fake {
~;
export default { task() { throw new PaymentError() }, x: [Dup, Quiet, quiet, Model, Plain, _mine, text] };`, "~", "`"))
	b, err := bundle.Build(t.Context(), path)
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`static \{ __className\(this, "(\w+)"\); \}`).FindAllStringSubmatch(b.Code, -1) {
		names = append(names, m[1])
	}
	require.Equal(t, []string{"Dup", "PaymentError", "Dup", "Quiet", "Model"}, names, b.Code)
	require.Equal(t, 1, strings.Count(b.Code, "function __className("))

	m, err := sourcemap.Parse(b.SourceMap)
	require.NoError(t, err)
	for i, line := range strings.Split(b.Code, "\n") {
		if c := strings.Index(line, "new PaymentError"); c >= 0 {
			p, ok := m.Position(i+1, c+1)
			require.True(t, ok)
			require.Equal(t, "w.ts:13:33", p.String())
		}
	}
	b, err = bundle.Build(t.Context(), write(t, dir+"/plain.js", `class A extends Error {} export default { task: () => A };`))
	require.NoError(t, err)
	require.NotContains(t, b.Code, "__className")
}

// Of functions with the same name all but one have a number, and no function costs a call to name it.
func TestBuildNumbersFunctionsOfTheSameName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/other.js", `export function parse() { return 1; } export const arrow = () => parse();`)
	path := write(t, dir+"/w.js", `import { arrow, parse as theirs } from "./other.js"; function parse() { return theirs() + arrow(); }
export default { task: () => parse() };`)
	b, err := bundle.Build(t.Context(), path)
	require.NoError(t, err)
	require.Regexp(t, `(?s)function parse\(\).*function parse2\(\)`, b.Code)
	require.NotContains(t, b.Code, "__name")
}
