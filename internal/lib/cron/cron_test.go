package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func ticks(t *testing.T, expression, zone, from string, n int) (got []string) {
	t.Helper()
	s, err := Parse(expression, zone)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, from)
	require.NoError(t, err)
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	for range n {
		at = s.Next(at)
		got = append(got, at.In(loc).Format("01-02T15:04:05Z07:00"))
	}
	return got
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cron, zone, from string
		want             []string
	}{
		{"*/15 9-10 * * 1-5", "", "2026-01-02T10:40:00Z", []string{"01-02T10:45:00Z", "01-05T09:00:00Z"}},
		{"30 0 9 * * MON", "", "2026-01-02T10:40:00Z", []string{"01-05T09:00:30Z", "01-12T09:00:30Z"}},
		{"0 0 13 * 5", "", "2026-01-01T00:00:00Z", []string{"01-02T00:00:00Z", "01-09T00:00:00Z", "01-13T00:00:00Z",
			"01-16T00:00:00Z"}},
		{"@hourly", "Asia/Kolkata", "2026-01-01T00:00:00Z", []string{"01-01T06:00:00+05:30", "01-01T07:00:00+05:30"}},
		{"@daily", "Europe/Berlin", "2026-01-01T00:00:00Z", []string{"01-02T00:00:00+01:00"}},
		{"@weekly", "", "2026-01-01T00:00:00Z", []string{"01-04T00:00:00Z"}},
		{"@every 90s", "", "2026-01-01T00:00:01Z", []string{"01-01T00:01:30Z", "01-01T00:03:00Z"}},
		{"@every 24h", "Europe/Berlin", "2026-01-01T00:00:01Z", []string{"01-02T01:00:00+01:00"}},
		{"0 12 29 2 *", "", "2026-01-01T00:00:01Z", []string{"02-29T12:00:00Z"}},

		// Clocks go forward from 2 to 3 on 2026-03-29 in Berlin: once, at the end of the gap.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", []string{"03-28T02:30:00+01:00", "03-29T03:00:00+02:00",
			"03-30T02:30:00+02:00"}},
		{"15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"03-29T03:00:00+02:00", "03-30T02:15:00+02:00"}},
		{"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"03-29T03:00:00+02:00", "03-30T02:00:00+02:00"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", []string{"03-29T01:30:00+01:00", "03-29T03:00:00+02:00",
			"03-29T03:30:00+02:00"}},
		{"15 * * * *", "Europe/Berlin", "2026-03-29T00:16:00Z", []string{"03-29T03:15:00+02:00", "03-29T04:15:00+02:00"}},
		// And back from 3 to 2 on 2026-10-25.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"10-25T02:30:00+02:00", "10-26T02:30:00+01:00"}},
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:15:00Z", []string{"10-25T02:30:00+02:00", "10-25T02:00:00+01:00",
			"10-25T02:30:00+01:00", "10-25T03:00:00+01:00"}},
		// By half an hour, and at midnight.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"10-04T02:30:00+11:00", "10-05T02:15:00+11:00"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"11-04T01:00:00-02:00", "11-05T00:00:00-02:00"}},
		// A whole day that was left out.
		{"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", []string{"12-29T12:00:00-10:00", "12-31T00:00:00+14:00",
			"12-31T12:00:00+14:00"}},
	} {
		require.Equal(t, c.want, ticks(t, c.cron, c.zone, c.from, len(c.want)), "%s %s", c.cron, c.zone)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, want string }{
		{"* * * *", "", "cron is \"* * * *\""},
		{"61 * * * *", "", "cron is \"61 * * * *\""},
		{"* * * * * * *", "", "cron is"},
		{"0 0 30 2 *", "", "there is no such day"},
		{"@every 1", "", "duration of whole seconds"},
		{"@every 500ms", "", "duration of whole seconds"},
		{"@every 1.5s", "", "duration of whole seconds"},
		{"@every -1s", "", "duration of whole seconds"},
		{"@sometimes", "", "cron is"},
		{"TZ=UTC * * * * *", "", "belongs in timeZone"},
		{"CRON_TZ=UTC * * * * *", "", "belongs in timeZone"},
		{"* * * * *", "Mars/Olympus", "timeZone is \"Mars/Olympus\""},
		{"* * * * *", "Local", "timeZone is \"Local\""},
		{"* * * * *", "../../etc/passwd", "timeZone is"},
		{"", "", "cron is"},
		{strings.Repeat("1,", 5000) + "1 * * * *", "", "spec too long"},
	} {
		_, err := Parse(c.cron, c.zone)
		require.ErrorContains(t, err, c.want)
		require.Less(t, len(err.Error()), 300)
	}
}

// Signs of Quartz are refused with what to write instead.
func TestSignsOfQuartz(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, item, want string }{
		{"0 0 L * *", "L", "write 28-31 as the day of the month, and let the handler return at once unless tomorrow is the 1st"},
		{"0 0 1,l * *", "l", "write 28-31 as the day of the month"},
		{"0 0 0 L-3 * *", "L-3", "it is that many days before the last"},
		{"0 0 LW * *", "LW", "write 26-31 as the day of the month"},
		{"0 0 15W * *", "15W", "write that day and the two on each side, like 13-17 for 15W"},
		{"0 0 W * *", "W", "nearest to the day"},
		{"0 0 * * 5L", "5L", "write 5 as the day of the week, and let the handler return at once unless the day a week later is of the next month"},
		{"0 0 * * friL", "friL", "write fri as the day of the week"},
		{"0 0 0 * * L", "L", "write 6 or SAT as the day of the week"},
		{"0 0 * * 1#2", "1#2", "write 1 as the day of the week, and let the handler return at once unless it is week 2 of the month"},
		{"0 0 0 * * MON#1", "MON#1", "write MON as the day of the week"},
	} {
		_, err := Parse(c.cron, "")
		require.ErrorContains(t, err, fmt.Sprintf("cron is %q: %s is not known here: ", c.cron, c.item))
		require.ErrorContains(t, err, c.want)
	}
	for _, good := range []string{"0 0 1 JUL *", "0 0 * * WED", "0 0 * jul wed", "0 0 ? * 1"} {
		_, err := Parse(good, "")
		require.NoError(t, err, good)
	}
}

// Whatever the expression and zone: ticks go forward, in whole seconds, and where one starts to count makes no
// difference.
func TestTicksDoNotDependOnWhereOneStarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		expression := rapid.SampledFrom([]string{
			"30 2 * * *", "*/20 * * * *", "0 */2 * * *", "15,45 1-3 * * *", "@hourly", "@every 7m", "0 0 * * 0",
			"*/30 59 2 * * *", "0 30 * 25 * *",
		}).Draw(t, "cron")
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
			"America/Sao_Paulo"}).Draw(t, "zone")
		s, err := Parse(expression, zone)
		require.NoError(t, err)
		from := time.Unix(rapid.Int64Range(1_500_000_000, 1_800_000_000).Draw(t, "from"), 0)
		a := s.Next(from)
		require.True(t, a.After(from))
		require.Zero(t, a.Nanosecond())
		between := from.Add(time.Duration(rapid.Int64Range(0, int64(a.Sub(from))-1).Draw(t, "between")))
		require.True(t, a.Equal(s.Next(between)), "%s after %s, %s after %s", a, from, s.Next(between), between)
		until := from.Add(time.Duration(rapid.Int64Range(0, int64(30*24*time.Hour)).Draw(t, "until")))
		var all []time.Time
		for tick := a; !tick.After(until); tick = s.Next(tick) {
			all = append(all, tick)
		}
		most := rapid.IntRange(1, 100).Draw(t, "most")
		require.Equal(t, len(all[max(0, len(all)-most):]), len(s.Missed(from, until, most)))
		for i, tick := range s.Missed(from, until, most) {
			require.True(t, tick.Equal(all[max(0, len(all)-most)+i]))
		}
	})
}

func TestMissedOverYearsIsCheap(t *testing.T) {
	t.Parallel()
	s, err := Parse("* * * * * *", "Europe/Berlin")
	require.NoError(t, err)
	until := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	got := s.Missed(until.AddDate(-20, 0, 0), until, 1000)
	require.Len(t, got, 1000)
	require.True(t, got[999].Equal(until))
	s, err = Parse("0 0 1 1 *", "")
	require.NoError(t, err)
	require.Len(t, s.Missed(until.AddDate(-20, 0, 0), until, 1000), 20)
}
