package report

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCurveTable checks the ratios to the first size of each line, and that a metric that no round has is left out.
func TestCurveTable(t *testing.T) {
	point := func(at int, line string, perSecond ...float64) Result {
		r := resultOf(Ours, perSecond...)
		r.Curve, r.At, r.Line = "threads", at, line
		return r
	}
	r := Report{Curves: []CurveText{{Name: "threads", Axis: "threads"}}, Cases: []Result{point(1, "pinned", 90, 100, 110),
		point(1, "shared", 50), point(2, "pinned", 150, 210, 200), point(2, "shared", 25)}}
	sections := r.sections()
	require.Len(t, sections, 1)
	require.Equal(t, []string{"2 pinned", "200", "2.00"}, sections[0].table[2][:3])
	require.Equal(t, []string{"2 shared", "25", "0.50"}, sections[0].table[4][:3])
	require.Len(t, sections[0].Plots, 1)
	require.NotContains(t, sections[0].Plots[0].SVG, "NaN")
	r.Cases[0].Curve = "of a later version"
	require.Len(t, r.sections(), 2, "it is drawn all the same")
}

func TestWhatWasMeasuredIsKept(t *testing.T) {
	r := Report{Cases: []Result{resultOf(Ours, 1)}}
	path := filepath.Join(t.TempDir(), "a.json")
	require.Contains(t, r.Keep(path), "a.json.incomplete")
	kept, err := Read(path+".incomplete", nil)
	require.NoError(t, err)
	require.Len(t, kept.Cases, 1)
	require.Empty(t, r.Keep(""))
}

func TestShortNames(t *testing.T) {
	a, b := resultOf(Ours, 1), resultOf(Ours, 1)
	b.Scenario = "cold"
	require.Equal(t, []string{"echo", "cold"}, shortNames([]*Result{&a, &b}))
	require.Equal(t, []string{"echo saturation one"}, shortNames([]*Result{&a}))
	require.Equal(t, []string{"echo", "echo"}, shortNames([]*Result{&a, &a}))
}

// TestPeersArePicturedTogether checks that systems that are compared are in one picture.
func TestPeersArePicturedTogether(t *testing.T) {
	var cases []*Result
	for _, owners := range []int{1, 100} {
		for range 8 {
			r := resultOf("x", 1)
			r.Beside, r.Owners = true, owners
			cases = append(cases, &r)
		}
	}
	parts := pictures(cases)
	require.Len(t, parts, 2)
	require.Len(t, parts[0], 8)
	require.Equal(t, 100, parts[1][0].Owners)
	for _, c := range cases {
		c.Beside = false
	}
	require.Len(t, pictures(cases)[0], most)
}
