package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "A_b-9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a.b": false, "a*": false, ">": false, "a b": false, "ä": false,
		"a/b": false, "~": false, "a\n": false,
	} {
		require.Equal(t, ok, ValidName(name), name)
		require.Equal(t, ok, CheckName("owner", name) == nil, name)
	}
	require.EqualError(t, CheckName("owner", "a.b"), `owner "a.b": a name is 1 to 64 of A-Z a-z 0-9 _ -`)

	owner, worker, err := ParseTarget("acme/hello")
	require.NoError(t, err)
	require.Equal(t, []string{"acme", "hello"}, []string{owner, worker})
	for _, s := range []string{"acme", "acme/", "/hello", "a/b/c", ""} {
		_, _, err := ParseTarget(s)
		require.Error(t, err, s)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds {
		got, err := ParseKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
	for _, s := range []string{"", "unknown", "Fetch"} {
		_, err := ParseKind(s)
		require.Error(t, err)
	}
	require.Equal(t, "unknown", Kind(0).String())
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	s := Subjects(DefaultPrefix)
	require.Equal(t, "pinwheel.events.task.acme.hello", s.Event(Task, "acme", "hello"))
	require.Equal(t, "pinwheel.events.*.*.*", s.AllEvents())
	require.Equal(t, "pinwheel.events.{{partition(16,2)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}", s.Stored())
	require.Equal(t, "pinwheel.events.7.>", s.Lane(7))
	require.Equal(t, "pinwheel.events.7.*.acme.>", s.LaneOwner(7, "acme"))
	require.Equal(t, "pinwheel.pin", s.Anchor())
	require.Equal(t, "pinwheel.events.>", s.AllStored())
	require.Equal(t, "pinwheel.call.fetch.acme.hello", s.Call(Fetch, "acme", "hello"))
	require.Equal(t, "pinwheel.call.>", s.AllCalls())
	require.Equal(t, "pinwheel.logs.acme.hello", s.Logs("acme", "hello"))
	require.Equal(t, "pinwheel.dead.>", s.AllDead())
	require.Equal(t, "pinwheel.parked.>", s.AllParked())
	require.Equal(t, "pinwheel.parked.acme.>", s.ParkedOwner("acme"))

	e := &Event{Kind: Task, Owner: "acme", Worker: "hello", Origin: Origin{Stream: "S", Seq: 9}}
	require.Equal(t, "pinwheel.dead.acme.hello.task.cpu.S.9", s.Dead(e, ReasonCPU))
	require.Equal(t, "pinwheel.parked.acme.task.hello", s.Parked(e))
	require.Equal(t, "pinwheel.parked.acme.task.hello.held", Held(s.Parked(e)))
	owner, worker, isHeld, ok := s.ParseParked(Held(s.Parked(e)))
	require.Equal(t, []any{"acme", "hello", true, true}, []any{owner, worker, isHeld, ok})
	owner, worker, isHeld, ok = s.ParseParked(s.Parked(e))
	require.True(t, ok)
	require.False(t, isHeld)
	require.Equal(t, "acme", owner)
	require.Equal(t, "hello", worker)
	for _, bad := range []string{"pinwheel.parked.acme", s.ParkedAnchor(), "pinwheel.parked.a*b.x", "other.parked.acme.x",
		""} {
		_, _, _, ok := s.ParseParked(bad)
		require.False(t, ok, bad)
	}
	require.Equal(t, "pinwheel.dead.~.~.unknown.malformed.S.9", s.Dead(&Event{Owner: "a.b", Worker: "*", Origin: e.Origin},
		ReasonMalformed))
	require.Equal(t, "pinwheel.dead.acme.*.*.cpu.*.*", s.DeadFilter("acme", "", "", ReasonCPU))
	require.Equal(t, "pinwheel.dead.*.*.*.*.*.*", s.DeadFilter("", "", "", ""))
	require.True(t, s.Owned("pinwheel.x"))
	require.False(t, s.Owned("pinwheelx.y"))
}

func TestParseStored(t *testing.T) {
	t.Parallel()
	s := Subjects("pw")
	lane, kind, owner, worker, ok := s.ParseStored("pw.events.15.task.a.b")
	require.True(t, ok)
	require.Equal(t, []any{15, "task", "a", "b"}, []any{lane, kind, owner, worker})
	for _, bad := range []string{"pw.events.16.task.a.b", "pw.events.-1.task.a.b", "pw.events.x.task.a.b",
		"pw.events.1.task.a", "pw.events.1.task.a.b.c", "pw.events.1.task..b", "pw.pin", "pinwheel.events.1.task.a.b", ""} {
		_, _, _, _, ok := s.ParseStored(bad)
		require.False(t, ok, bad)
	}
}

func TestParseCall(t *testing.T) {
	t.Parallel()
	s := Subjects(DefaultPrefix)
	k, owner, worker, err := s.ParseCall("pinwheel.call.fetch.acme.hello")
	require.NoError(t, err)
	require.Equal(t, []any{Fetch, "acme", "hello"}, []any{k, owner, worker})
	for bad, want := range map[string]string{
		"pinwheel.call.fetch.acme":         "it is pinwheel.call.KIND.OWNER.WORKER",
		"pinwheel.call.fetch.acme.hello.x": "it is pinwheel.call.KIND.OWNER.WORKER",
		"fetch.acme.hello":                 "it is pinwheel.call.KIND.OWNER.WORKER",
		"pinwheel.call.get.acme.hello":     `kind "get"`,
		"pinwheel.call.fetch.a!.hello":     `owner "a!"`,
		"pinwheel.call.fetch.acme.h!":      `worker "h!"`,
	} {
		_, _, _, err := s.ParseCall(bad)
		require.ErrorContains(t, err, want)
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	h := Header{"A": {"1", "2"}, "B": {}}
	require.Equal(t, []string{"1", "", "", ""}, []string{h.Get("A"), h.Get("B"), h.Get("C"), h.Get("a")})
	h.Set("A", "3")
	require.Equal(t, []string{"3"}, h["A"])
	for name, want := range map[string]bool{"Nats-Msg-Id": true, "nats-x": true, "STATUS": true, "Description": true,
		"Statuses": false, "Nats": false} {
		require.Equal(t, want, serverHonoured(name), name)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, r := range Reasons {
		got, err := ParseReason(string(r))
		require.NoError(t, err)
		require.Equal(t, r, got)
		require.True(t, ValidName(string(r)), "a token of a subject")
		require.GreaterOrEqual(t, r.Status(), 400)
	}
	_, err := ParseReason("bored")
	require.ErrorContains(t, err, "one of exception, cpu")
	// Design §4.
	for r, status := range map[Reason]int{
		ReasonException: 500, ReasonCPU: 429, ReasonMemory: 429, ReasonTimeout: 504, ReasonNoWorker: 404,
		ReasonNoHandler: 501,
		ReasonMalformed: 400, ReasonExpired: 503, ReasonCrash: 503, ReasonTooLarge: 500, ReasonUnavailable: 503,
	} {
		require.Equal(t, status, r.Status(), r)
	}
	for _, r := range []Reason{ReasonNoWorker, ReasonNoHandler, ReasonMalformed, ReasonExpired} {
		require.False(t, r.Transient(), r)
	}
	f := NewFailure(ReasonCPU, strings.Repeat("ä", MaxMessage), "\xff"+strings.Repeat("x", MaxStack))
	require.LessOrEqual(t, len(f.Message), MaxMessage)
	require.LessOrEqual(t, len(f.Stack), MaxStack)
	require.True(t, strings.HasPrefix(f.Stack, "\uFFFD"))
	require.Equal(t, "cpu: 50 ms", Fail(ReasonCPU, "%d ms", 50).Error())
}
