package report

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSummarize(t *testing.T) {
	require.Equal(t, summary{3, 1, 9, 3}, summarize([]float64{9, 1, 3}))
	require.Equal(t, summary{2.5, 1, 9, 4}, summarize([]float64{9, 1, 3, 2}))
	require.InDelta(t, 1.6, summarize([]float64{9, 1, 2.5}).spread(), 1e-9)
	require.True(t, summary{min: 3, max: 4}.apart(summary{min: 1, max: 2}))
	require.False(t, summary{min: 2, max: 4}.apart(summary{min: 1, max: 2}))
}

// resultOf returns a result with a round for each value of events/s.
func resultOf(system string, perSecond ...float64) Result {
	r := Result{Case: Case{System: system, Scenario: "echo", Load: Saturation, Topology: TopologyOne, Processes: 1,
		Owners: 1}}
	for _, v := range perSecond {
		r.Rounds = append(r.Rounds,
			Round{Metrics: map[string]float64{"events/s": v, "fleet µs/event": 1e6 / v, "foreign cores": 0}})
	}
	return r
}

func TestCompare(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new []float64
		want     string // summary of events/s
		cpu      string
	}{
		"same":       {[]float64{100, 101, 102, 103}, []float64{99, 102, 104, 101}, "noise", "noise"},
		"faster":     {[]float64{100, 101, 102, 103}, []float64{200, 202, 204, 206}, "better", "better"},
		"slower":     {[]float64{100, 101, 102, 103}, []float64{90, 91, 92, 93}, "worse", "worse"},
		"few rounds": {[]float64{100, 101}, []float64{200, 201}, "perhaps", "perhaps"},
		"one tells":  {[]float64{100, 101, 102, 103}, []float64{200, 202, 204, 102}, "noise", "noise"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := resultOf(Ours, tt.old...), resultOf(Ours, tt.new...)
			got := map[string]string{}
			for _, d := range differences(&a, &b) {
				got[d.metric.name] = d.verdict()
			}
			require.Contains(t, got["events/s"], tt.want)
			require.Contains(t, got["fleet µs/event"], tt.cpu, "less is better here")
			require.NotContains(t, got, "foreign cores")
		})
	}
}

func TestCompareNeedsCasesInCommon(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, r Result) string {
		text, err := json.Marshal(Report{Cases: []Result{r}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		return filepath.Join(dir, name)
	}
	other := resultOf(Ours, 1)
	other.Owners = 7
	require.ErrorContains(t, Compare(io.Discard, write("a", resultOf(Ours, 1)), write("b", other)),
		"have no case in common")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c"), []byte("{"), 0o600))
	require.ErrorContains(t, Compare(io.Discard, filepath.Join(dir, "c"), "b"), "is no file that --json wrote")
}

func TestDisturbedRoundsDoNotCount(t *testing.T) {
	r := resultOf(Ours, 1, 100, 102)
	r.Rounds[0].Disturbed = true
	s, ok := r.summary("events/s")
	require.True(t, ok)
	require.Equal(t, summary{101, 100, 102, 2}, s)
	r.Rounds[1].Disturbed, r.Rounds[2].Disturbed = true, true
	s, _ = r.summary("events/s")
	require.Equal(t, 3, s.n, "better than nothing, and marked")
	var out strings.Builder
	report := Report{Cases: []Result{r}}
	require.NoError(t, report.Print(&out))
	require.Contains(t, out.String(), "3*")
}

func TestRatiosToPeers(t *testing.T) {
	report := Report{Cases: []Result{resultOf(Ours, 200), resultOf("bun-plain", 100)}}
	for i := range report.Cases {
		report.Cases[i].Beside = true
	}
	var out strings.Builder
	require.NoError(t, report.Print(&out))
	require.Regexp(t, `pinwheel saturation owners=1 +1\.00 +200`, out.String())
	require.Regexp(t, `bun-plain saturation owners=1 +2\.00 +100`, out.String())
}

// TestPlotsAreXML draws all that a report can contain, and parses it.
func TestPlotsAreXML(t *testing.T) {
	report := Report{Cases: []Result{resultOf(Ours, 10, 12, 50_000), resultOf("a<b", 0.1)}}
	open := Result{Case: Case{System: Ours, Scenario: "echo", Load: OpenLoop}}
	open.Rounds = []Round{{Curve: []Point{{50, 0.4}, {99, 80}, {100, 900}}},
		{Curve: []Point{{50, 0.6}, {99, 100}, {100, 1}}}}
	report.Cases = append(report.Cases, open)
	require.Equal(t, []Point{{50, 0.5}, {99, 90}, {100, 450.5}}, open.curve())
	plots := report.plots()
	require.Len(t, plots, 5)
	for _, p := range plots {
		for d := xml.NewDecoder(strings.NewReader(p.SVG)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, p.File)
		}
		require.NotContains(t, p.SVG, "NaN", p.File)
		require.NotContains(t, p.SVG, "Inf", p.File)
	}
	page, err := report.page()
	require.NoError(t, err)
	require.Contains(t, string(page), "<svg")
	require.NotContains(t, string(page), "a<b")
}
