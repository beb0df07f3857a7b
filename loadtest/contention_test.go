package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

func TestContention(t *testing.T) {
	t.Parallel()
	r := report.New(t.Context(), nil, curveTexts())
	out := func(a, b string) []byte {
		return []byte("goos: linux\nBenchmarkLocker/work=io/threads=8/way=pinned-2 \t 300\t 8.5 cpu-µs/event\t " + a + " events/s\n" +
			"BenchmarkLocker/work=io/threads=8/way=held \t 300\t 9.5 cpu-µs/event\t " + b + " events/s\nPASS\n")
	}
	require.NoError(t, addBenchmark(r, out("1300", "190"), 0))
	require.NoError(t, addBenchmark(r, out("1500", "170"), 0.5))
	require.NoError(t, addBenchmark(r, out("1400", "180"), 0.1))
	require.Len(t, r.Cases, 2)
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	require.Regexp(t, `(?m)^ *threads, waiting +events/s +× +cpu µs/event +foreign cores +± +rounds$`, text.String())
	require.Regexp(t, `(?m)^ *8 held +185 +1.00 +9.5 +0.05 +3 % +2$`, text.String())
	// The second round was disturbed.
	require.Regexp(t, `(?m)^ *8 pinned +1350 +1.00 +8.5 +0.05 +4 % +2$`, text.String())
	require.ErrorContains(t, addBenchmark(r, []byte("BenchmarkLocker/work=io/threads=8/way=held \t 300\t 9.5 cpu-µs/event\n"), 0),
		"did not say what it is to")
	require.ErrorContains(t, addBenchmark(r, append(out("1", "2"), "--- FAIL: x"...), 0), "did not say")
}

// TestContentionOfTheBenchmark runs the real benchmark with a few events.
func TestContentionOfTheBenchmark(t *testing.T) {
	t.Parallel()
	o := defaultOptions()
	o.rounds, o.duration = 1, 1
	b, err := buildBenchmark(t.Context())
	require.NoError(t, err)
	t.Cleanup(b.close)
	r, err := b.contend(t.Context(), o, "BenchmarkLocker/work=echo/threads=2")
	require.NoError(t, err)
	require.Len(t, r.Cases, 4)
	for _, c := range r.Cases {
		require.Positive(t, c.Rounds[0].Metrics["events/s"], c.Name())
	}
	_, err = b.contend(t.Context(), o, "BenchmarkNothing")
	require.ErrorContains(t, err, "did not say what it is to")
}
