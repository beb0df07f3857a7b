package workers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitsWithin(t *testing.T) {
	t.Parallel()
	ceilings := Limits{CPU: Millis(20 * time.Millisecond), HeapMB: 64, LogBytes: 1 << 20}
	got := Limits{CPU: Millis(time.Second), HeapMB: 32}.Within(ceilings)
	require.Equal(t, Limits{
		CPU: ceilings.CPU, Wall: DefaultLimits.Wall, HeapMB: 32, Subrequests: DefaultLimits.Subrequests,
		Sends: DefaultLimits.Sends, LogBytes: DefaultLimits.LogBytes,
	}, got)
	require.Equal(t, DefaultLimits, Limits{}.Within(Limits{}))
}

func TestPolicyAllows(t *testing.T) {
	t.Parallel()
	p := Policy{Ceilings: Limits{CPU: Millis(20 * time.Millisecond), Subrequests: 5}}
	require.NoError(t, p.Allow(Limits{}), "a worker that asks for nothing gets the ceiling")
	require.NoError(t, p.Allow(Limits{CPU: Millis(20 * time.Millisecond), HeapMB: 512}))
	require.EqualError(t, p.Allow(Limits{Subrequests: 6}), "limits.subrequests is 6: this owner may have at most 5")
}

func TestPolicyIsBounded(t *testing.T) {
	t.Parallel()
	require.NoError(t, Policy{}.Validate())
	require.NoError(t, MaxPolicy.Validate())
	for _, p := range []Policy{{Weight: -1}, {Weight: 101}, {MaxRunning: 640_001}, {HeapMB: 4000},
		{Ceilings: Limits{HeapMB: 1}}, {Compilers: CompilersNone}, {Compilers: "Full"}} {
		require.Error(t, p.Validate(), "%+v", p)
	}
	require.NoError(t, Policy{Compilers: CompilersFull}.Validate())
	require.NoError(t, Policy{Compilers: CompilersBaseline}.Validate())
	require.EqualError(t, Policy{Compilers: "jit"}.Validate(),
		`compilers is "jit": it is full or baseline, or "" for what the fleet has`)
	text, err := json.Marshal(Policy{Weight: 2})
	require.NoError(t, err)
	require.JSONEq(t, `{"weight":2}`, string(text))
}

func TestCompilersWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ c, most, want Compilers }{
		{"", "", CompilersFull},
		{CompilersFull, CompilersBaseline, CompilersBaseline},
		{CompilersBaseline, "", CompilersBaseline},
		{CompilersBaseline, CompilersNone, CompilersNone},
		{CompilersNone, CompilersFull, CompilersNone},
	} {
		require.Equal(t, c.want, c.c.Within(c.most), "%+v", c)
	}
}
