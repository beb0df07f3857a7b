package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes with other compilers of V8 than the rest are told, and a fleet in which no policy can allow all of them.
func TestCompilersOfProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by   map[string]int
		want []Line
	}{
		{map[string]int{"full": 3}, nil},
		{map[string]int{"none": 2}, []Line{{OK, "compilers",
			"owners get no more compilers of V8 than PINWHEEL_COMPILERS allows: 2 × none", ""}}},
		{map[string]int{"full": 1, "baseline": 2}, []Line{{Warn, "compilers",
			"workers get other compilers of V8 in some processes: 2 × baseline, 1 × full",
			"set PINWHEEL_COMPILERS for all alike, once a rolling restart is over"}}},
	} {
		p := &checker{}
		p.compilers(c.by)
		require.Equal(t, c.want, p.lines)
	}
}
