package workers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// everything is how many places the keys of a worker have.
const everything = 10_000

func FuzzParsePercent(f *testing.F) {
	for _, text := range []string{"10%", "12.5", "100%", "0.01%", "0.001%", "1e-9", "99.9999999999", "NaN", "-Inf%",
		"0x1p4", "1_0%", "10%%", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := workers.ParsePercent(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		isShare(t, p)
		again, err := workers.ParsePercent(fmt.Sprintf("%v%%", p))
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}

// isShare checks that a percentage is a share of the keys that a deployment can have, beside one that has the rest.
func isShare(t *testing.T, p float64) {
	require.NoError(t, workers.CheckPercent(p))
	n := workers.Points(p)
	require.True(t, n >= 1 && n <= everything, "%v has %d points", p, n)
	require.Equal(t, p == 100, n == everything, "%v", p)
	if p < 100 {
		require.NoError(t, workers.CheckPercent(float64(everything-n)/100))
	}
}

func FuzzParseSteps(f *testing.F) {
	for _, text := range []string{
		"10%,50%@20s", "10", "1%@1s, 2%@168h", "10%@0s", "10%@-1s,20%", "5%@1h,5%", "99.9999999999%", "1%@1.0005s", "10%,",
		",", "@", "10%@9999999999h", "0.01,0.02,0.03@5m,100",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := workers.ParseSteps(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.True(t, len(steps) >= 1 && len(steps) <= workers.MaxSteps)
		var parts []string
		for i, s := range steps {
			isShare(t, s.Percent)
			require.Less(t, s.Percent, 100.0)
			require.True(t, i == 0 || s.Percent > steps[i-1].Percent)
			require.True(t, s.For.Duration() >= time.Second && s.For.Duration() <= 7*24*time.Hour, "%s", s.For.Duration())
			parts = append(parts, fmt.Sprintf("%v%%@%s", s.Percent, s.For.Duration()))
		}
		again, err := workers.ParseSteps(strings.Join(parts, ","))
		require.NoError(t, err)
		require.Equal(t, steps, again)
		// It is stored as JSON, in whole milliseconds.
		text2, err := json.Marshal(workers.Rollout{ID: 1, Steps: steps, State: workers.RolloutRunning})
		require.NoError(t, err)
		var stored workers.Rollout
		require.NoError(t, json.Unmarshal(text2, &stored))
		require.NoError(t, stored.Validate())
	})
}

func FuzzParseGuard(f *testing.F) {
	for _, text := range []string{"failures<2%", " failures < 0.5 % ", "failures<0", "failures<100.01%", "failures<1e-9",
		"failures<NaN", "failures>2%", "errors<2%", "failures<failures<2%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := workers.ParseGuard(text)
		if err != nil {
			require.Zero(t, g)
			require.NotEmpty(t, err.Error())
			return
		}
		isShare(t, g.Failures)
		again, err := workers.ParseGuard(fmt.Sprintf("failures<%v%%", g.Failures))
		require.NoError(t, err)
		require.Equal(t, g, again)
		require.NotEmpty(t, g.Bad(workers.Runs{Ended: 100, Failed: 100}, false), "a guard that nothing fails guards nothing")
		require.Empty(t, g.Bad(workers.Runs{Ended: 100}, true))
	})
}

// What rounds to no share, or to everything, is no share beside another one.
func TestSharesThatRoundAway(t *testing.T) {
	t.Parallel()
	for _, p := range []float64{1e-9, 99.9999999999} {
		require.ErrorContains(t, workers.CheckPercent(p), "it is above 0, at most 100")
	}
	for _, p := range []float64{0.01, 0.1 + 0.2, 12.5, 99.99, 100} {
		require.NoError(t, workers.CheckPercent(p))
	}
}

func TestAStepOfNoTimeIsRefused(t *testing.T) {
	t.Parallel()
	for _, hold := range []string{"0s", "-5m", "1ms"} {
		_, err := workers.ParseSteps("10%@" + hold)
		require.ErrorContains(t, err, "steps[0] holds for")
		require.ErrorContains(t, err, "it is 1s to 168h0m0s")
	}
}
