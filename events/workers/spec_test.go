package workers

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/stretchr/testify/require"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	require.Equal(t, DefaultLimits, Limits{}.OrDefault())
	l := Limits{HeapMB: 64}.OrDefault()
	require.Equal(t, 64, l.HeapMB)
	require.Equal(t, DefaultLimits.CPU, l.CPU)
	require.NoError(t, Limits{}.Validate())
	require.NoError(t, DefaultLimits.Validate())
	require.NoError(t, MaxLimits.Validate())
	for want, l := range map[string]Limits{
		"limits.cpuMs is 300001: it is 1 to 300000": {CPU: MaxLimits.CPU + Millis(time.Millisecond)},
		"limits.wallMs is -1: it is 1 to 900000":    {Wall: -Millis(time.Millisecond)},
		"limits.heapMB is 7: it is 8 to 512":        {HeapMB: 7},
		"limits.subrequests is -1: it is 1 to 1000": {Subrequests: -1},
		"limits.logBytes is -1: it is 1 to 1048576": {LogBytes: -1},
	} {
		require.EqualError(t, l.Validate(), want)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	require.Equal(t, DefaultRetries, Retries{}.OrDefault())
	require.NoError(t, Retries{}.Validate())
	require.NoError(t, DefaultRetries.Validate())
	slow := Retries{Initial: Millis(30 * time.Minute)}.OrDefault()
	require.Equal(t, slow.Initial, slow.Max, "never longer than Max, never shorter than Initial")
	second := Millis(time.Second)
	for want, r := range map[string]Retries{
		"retries.maxAttempts is 101: it is 1 to 100":                     {MaxAttempts: 101},
		"retries.initialMs is 3600001: it is 1 to 3600000":               {Initial: Millis(time.Hour + time.Millisecond)},
		"retries.factor is 0.5: it is 1 to 10":                           {Factor: 0.5},
		"retries.maxMs is 999: it is retries.initialMs to 86400000":      {Initial: second, Max: second - Millis(time.Millisecond)},
		"retries.maxMs is 86400001: it is retries.initialMs to 86400000": {Max: Millis(24*time.Hour + time.Millisecond)},
		"retries.jitter is 1.1: it is 0 to 1":                            {Jitter: new(1.1)},
	} {
		require.EqualError(t, r.Validate(), want)
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	var l Limits
	require.NoError(t, json.Unmarshal([]byte(`{"cpuMs":50,"wallMs":0}`), &l))
	require.Equal(t, 50*time.Millisecond, l.CPU.Duration())
	b, err := json.Marshal(Limits{CPU: Millis(1500 * time.Millisecond)})
	require.NoError(t, err)
	require.JSONEq(t, `{"cpuMs":1500}`, string(b))
	for _, bad := range []string{`"50"`, `1.5`, `-1`, `1e3`, `"1s"`, `99999999999999999999`, `31536000001`, `{}`} {
		require.Error(t, json.Unmarshal([]byte(`{"cpuMs":`+bad+`}`), &l), bad)
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	require.NoError(t, Spec{}.Validate())
	require.Equal(t, Spec{Mode: Pinned, Limits: DefaultLimits, Retries: DefaultRetries}, Spec{}.OrDefault())
	daily := Schedule{Name: "d", Cron: "@daily"}
	for want, s := range map[string]Spec{
		`mode "turbo": it is one of pinned, shared, oneshot, persistent`: {Mode: "turbo"},
		`lifetime is for mode "persistent": the mode is "pinned"`:        {Lifetime: Lifetime{Requests: 1}},
		"limits.heapMB is 7: it is 8 to 512":                             {Limits: Limits{HeapMB: 7}},
		"retries.factor is 0.5: it is 1 to 10":                           {Retries: Retries{Factor: 0.5}},
		"lifetime.idleMs is 1: it is 10 to 2592000000":                   {Mode: Persistent, Lifetime: Lifetime{Idle: Millis(time.Millisecond)}},
		"onDeadLetter has either a worker or a subject":                  {OnDead: &events.DeadHook{}},
		`schedules[1].name is "d": schedules[0] has that name`:           {Schedules: []Schedule{daily, daily}},
		"schedules has 101: at most 100 are allowed":                     {Schedules: make([]Schedule, 101)},
		"vars.Q is a queue too: a name in env is one thing": {Bindings: Bindings{Vars: map[string]string{"Q": ""},
			Queues: map[string]string{"Q": "w"}}},
		`queues.Q is no worker: worker "": a name is 1 to 64 of A-Z a-z 0-9 _ -`: {Bindings: Bindings{Queues: map[string]string{"Q": ""}}},
	} {
		require.EqualError(t, s.Validate(), want)
	}
}

func TestPropagates(t *testing.T) {
	t.Parallel()
	trace := &Trace{Propagate: []string{"api.example.com", "*.internal.example.com", "[::1]"}}
	require.NoError(t, trace.validate())
	for host, want := range map[string]bool{
		"api.example.com": true, "API.Example.com.": true, "a.internal.example.com": true, "a.b.internal.example.com": true,
		"::1": true, "::2": false, "internal.example.com": false, "xinternal.example.com": false, "evil.com": false,
		"api.example.com.evil.com": false, "": false,
	} {
		require.Equal(t, want, trace.Propagates(host), host)
	}
	require.False(t, (*Trace)(nil).Propagates("api.example.com"))
	for _, wrong := range []string{"", "*", "*.", "https://a", "A.example.com", "a b", "a/b", "*.*.com", ".a", "a:*",
		"api.example.com:8080", "[::1", "::1", "*.[::1]", "[0:0::1]", "[127.0.0.1]"} {
		err := (&Trace{Propagate: []string{"ok.example.com", wrong}}).validate()
		require.ErrorContains(t, err, fmt.Sprintf("trace.propagate[1] is %q: it is a host in lower case", wrong))
	}
	require.ErrorContains(t, (&Trace{Propagate: make([]string, 33)}).validate(), "trace.propagate has 33: at most 32 are allowed")
}
