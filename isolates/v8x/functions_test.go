package v8x

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FunctionsIn counts each function at least once, and no data.
func TestFunctionsIn(t *testing.T) {
	for code, least := range map[string]int64{
		`x => 1`:                              1,
		`function f(){}`:                      1,
		`function f() {}`:                     1,
		"function f()\n{}":                    1,
		"function f() // text\n{}":            1,
		"function f() // text\u2028{}":        1,
		"function f()\u00a0{}":                1,
		`function f()/**/{}`:                  1,
		`({ m(){}, get a(){}, async*b(){}})`:  3,
		`class A { x = 1; static y = 2 }`:     3,
		`class A extends B{static{}}`:         3,
		`(a = () => 1) => { return () => 2 }`: 3,
	} {
		require.GreaterOrEqual(t, FunctionsIn(code)-RuntimeFunctions, least, code)
	}
	require.EqualValues(t, RuntimeFunctions, FunctionsIn(`const x = [{"a":{"b":1}},{"a":{"b":2}}]`))
}
