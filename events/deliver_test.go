package events

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeliverHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		h    Header
		want time.Time
		err  string
	}{
		{Header{"Deliver-After": {"90"}}, storedAt.Add(90 * time.Second), ""},
		{Header{"deliver-after": {"1.5"}}, storedAt.Add(1500 * time.Millisecond), ""},
		{Header{"Deliver-After": {"1h30m"}}, storedAt.Add(90 * time.Minute), ""},
		{Header{"Deliver-After": {"0"}}, time.Time{}, ""},
		{Header{"Deliver-After": {"31622400"}}, storedAt.Add(MaxDelay), ""},
		{Header{"Deliver-At": {"2031-01-02T03:04:05.678+01:00"}}, time.Time{}, "at most 366 days"},
		{Header{"Deliver-At": {storedAt.Add(time.Hour).Format(time.RFC3339Nano)}}, storedAt.Add(time.Hour), ""},
		{Header{"Deliver-At": {"2001-01-02T03:04:05Z"}}, time.Time{}, ""},
		{Header{"Deliver-At": {"tomorrow"}}, time.Time{}, "it is a time in RFC 3339"},
		{Header{"Deliver-At": {""}}, time.Time{}, "it is a time in RFC 3339"},
		{Header{"Deliver-After": {""}}, time.Time{}, "it is a duration"},
		{Header{"Deliver-After": {"-1s"}}, time.Time{}, "0 to 31622400"},
		{Header{"Deliver-After": {"-1"}}, time.Time{}, "0 to 31622400"},
		{Header{"Deliver-After": {"NaN"}}, time.Time{}, "it is a duration"},
		{Header{"Deliver-After": {"1e300"}}, time.Time{}, "it is a duration"},
		{Header{"Deliver-After": {"0x10"}}, time.Time{}, "it is a duration"},
		{Header{"Deliver-After": {"9000h"}}, time.Time{}, "0 to 31622400"},
		{Header{"Deliver-After": {"1"}, "Deliver-At": {"2001-01-02T03:04:05Z"}}, time.Time{}, "one of them"},
		{Header{"Deliver-After": {"1", "2"}}, time.Time{}, "does not appear once"},
		{Header{"Deliver-After": {"1"}, "deliver-after": {"2"}}, time.Time{}, "does not appear once"},
	} {
		e, f := testDecoder.Decode(stored("task", "acme", "hello"), c.h, []byte("{}"), storedAt)
		if c.err != "" {
			require.NotNil(t, f, c.h)
			require.Equal(t, ReasonMalformed, f.Reason)
			require.Contains(t, f.Message, c.err)
			require.True(t, e.DeliverAt.IsZero())
			continue
		}
		require.Nil(t, f, c.h)
		require.True(t, c.want.Equal(e.DeliverAt), "%v: %s", c.h, e.DeliverAt)
	}
	h := Header{"Deliver-After": {"24h"}, "Body-Id": {"b"}, "Body-Parts": {"2"}}
	_, f := testDecoder.Decode(stored("fetch", "acme", "hello"), h, nil, storedAt)
	require.Contains(t, f.Message, "delayed by at most 12h")
}

func FuzzDeliverHeaders(f *testing.F) {
	for _, s := range []string{"90", "1.5", "1h30m", "-1", "NaN", "1e9", "Inf", "0x1p4", "2026-01-02T15:04:05.123Z",
		"9999-12-31T23:59:60Z", " 1", "1_0", "٣"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, at, after string) {
		if d, err := ParseDeliverAfter(after); err == nil && (d < 0 || d > MaxDelay) {
			t.Fatalf("%q is %s", after, d)
		}
		for _, h := range []Header{{HeaderDeliverAt: {at}}, {HeaderDeliverAfter: {after}}} {
			e, f := testDecoder.Decode(stored("task", "acme", "hello"), h, nil, storedAt)
			switch {
			case f == nil && (!e.DeliverAt.IsZero() && !e.DeliverAt.After(storedAt) || e.DeliverAt.Sub(storedAt) > MaxDelay):
				t.Fatalf("%v is at %s", h, e.DeliverAt)
			case f != nil && strings.ContainsAny(f.Message, "\r\n"):
				t.Fatalf("message of two lines: %q", f.Message)
			}
		}
	})
}

func TestScheduleSubjects(t *testing.T) {
	t.Parallel()
	s := Subjects("pinwheel")
	e, f := testDecoder.Decode(stored("task", "acme", "hello"), Header{"Event-Id": {"a b.>*"}}, nil, storedAt)
	require.Nil(t, f)
	require.Regexp(t, `^pinwheel\.schedules\.at\.[0-3]\.task\.acme\.hello\.[0-9a-f]{24}\.PINWHEEL_EVENTS-42-1700000000000000000$`, s.Waiting(e))
	require.Equal(t, strings.Replace(s.Waiting(e), ".at.", ".due.", 1), s.Due(e))
	require.Regexp(t, `^pinwheel\.schedules\.\*\.[0-3]\.task\.acme\.hello\.\*\.PINWHEEL_EVENTS-42-1700000000000000000$`, s.Anywhere(e))
	earlier := *e
	earlier.Key = "PINWHEEL_EVENTS-42"
	require.Equal(t, s.Anywhere(&earlier), s.AnywhereEarlier(e))
	got, _, f := testDecoder.DecodeParked(Origin{Stream: "S", Seq: 3, Subject: s.Due(&earlier)}, EncodeParked(e, FirstRun),
		nil, storedAt)
	require.Nil(t, f)
	require.Equal(t, s.Waiting(&earlier), s.Waiting(got), "what an earlier binary has put off stays under its key")
	require.Equal(t, "pinwheel.schedules.at.*.*.acme.*.*.*", s.WaitingEvents("acme", "", ""))
	require.Contains(t, s.Waiting(e), strings.Split(s.WaitingEvents("acme", "hello", "a b.>*"), ".")[7])
	for _, foreign := range []string{s.AllEvents(), s.AllCalls(), s.AllDead(), s.AllBodies(), s.AllCancels(),
		s.AllUnschedules()} {
		require.False(t, strings.HasPrefix(foreign, "pinwheel.schedules."), "who may publish to %s may not reach the schedules", foreign)
	}
	lanes := map[string]int{}
	for _, owner := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "acme", "globex"} {
		lanes[dueLane(owner)]++
	}
	require.Greater(t, len(lanes), 1)
	owner, worker, ok := s.ParseUnschedule(s.Unschedule("acme", "hello"))
	require.True(t, ok)
	require.Equal(t, "acme/hello", owner+"/"+worker)
}
