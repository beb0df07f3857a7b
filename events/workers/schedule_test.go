package workers

import (
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/stretchr/testify/require"
)

func TestTickRoundTrip(t *testing.T) {
	t.Parallel()
	s := events.Subjects("pinwheel")
	at := time.Unix(1_700_000_000, 0)
	decoder := events.Decoder{Subjects: events.DefaultPrefix, ReplyPrefixes: []string{"_INBOX."}}
	for overlap, key := range map[events.Overlap]string{"": "cron~n~1700000000", events.OverlapForbid: "forbid~n",
		events.OverlapReplace: "replace~n"} {
		e := NewTick(s, "acme", "hello", Schedule{Name: "n", Cron: "* * * * *", Overlap: overlap}, at)
		got, _, f := decoder.DecodeParked(events.Origin{Stream: "S", Seq: 3, Subject: s.Due(e)},
			events.EncodeParked(e, events.FirstRun), nil, at)
		require.Nil(t, f)
		require.Equal(t, key, got.Key)
		require.Equal(t, "cron:acme:hello:n:1700000000", got.ID)
		require.Equal(t, at.UnixMilli(), got.ScheduledTime)
		require.Equal(t, "* * * * *", got.Cron)
		require.Equal(t, overlap.OrDefault(), got.Overlaps())
		require.Equal(t, events.Stored{Stream: "S", Seq: 3}, got.FirstStored())
		letter := events.NewDeadLetter(got, events.Fail(events.ReasonException, "x"), "", "n", 1, at)
		require.Equal(t, "scheduled", letter.Kind)
	}
}
