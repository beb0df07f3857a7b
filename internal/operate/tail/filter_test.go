package tail

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func line(level, text string) *Entry {
	return &Entry{Type: TypeLog, Owner: "acme", Worker: "w", Version: "12-0123456789ab", EventID: "e1", Level: level,
		Text: text}
}

func event(outcome, reason string, status int) *Entry {
	return &Entry{Type: TypeEvent, Owner: "acme", Worker: "w", Version: "12-0123456789ab", EventID: "e1", Kind: "fetch",
		Outcome: outcome, Reason: reason, Status: status}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    Filter
		e    *Entry
		want bool
	}{
		{Filter{}, line("debug", "x"), true},
		{Filter{}, event(OutcomeOK, "", 200), true},
		{Filter{Worker: "w"}, line("info", "x"), true},
		{Filter{Worker: "v"}, line("info", "x"), false},
		{Filter{Only: OnlyLogs}, line("info", "x"), true},
		{Filter{Only: OnlyLogs}, event(OutcomeOK, "", 0), false},
		{Filter{Only: OnlyEvents}, line("info", "x"), false},
		{Filter{Only: OnlyEvents}, event(OutcomeOK, "", 0), true},
		{Filter{Level: "warn"}, line("info", "x"), false},
		{Filter{Level: "warn"}, line("warn", "x"), true},
		{Filter{Level: "warn"}, line("error", "x"), true},
		{Filter{Level: "warn"}, event(OutcomeOK, "", 200), false},
		{Filter{Level: "warn"}, event(OutcomeFailed, "timeout", 0), true},
		{Filter{Level: "error"}, event(OutcomeBroken, "cpu", 200), true},
		{Filter{Status: []string{"broken"}}, event(OutcomeBroken, "cpu", 200), true},
		{Filter{Status: []string{"ok"}}, event(OutcomeBroken, "cpu", 200), false},
		{Filter{Level: "info"}, line("strange", "x"), true},
		{Filter{Version: "12"}, line("info", "x"), true},
		{Filter{Version: "12-0123456789ab"}, line("info", "x"), true},
		{Filter{Version: "1"}, line("info", "x"), false},
		{Filter{EventID: "e1"}, line("info", "x"), true},
		{Filter{EventID: "e1"}, event(OutcomeOK, "", 0), true},
		{Filter{EventID: "e"}, line("info", "e1"), false},
		{Filter{EventID: "e11"}, event(OutcomeOK, "", 0), false},
		{Filter{Status: []string{"failed"}}, event(OutcomeFailed, "timeout", 0), true},
		{Filter{Status: []string{"timeout"}}, event(OutcomeFailed, "timeout", 0), true},
		{Filter{Status: []string{"exception", "5xx"}}, event(OutcomeFailed, "timeout", 504), true},
		{Filter{Status: []string{"504"}}, event(OutcomeFailed, "timeout", 504), true},
		{Filter{Status: []string{"4xx"}}, event(OutcomeFailed, "timeout", 504), false},
		{Filter{Status: []string{"ok"}}, event(OutcomeFailed, "timeout", 504), false},
		{Filter{Status: []string{"ok"}}, line("info", "ok"), false},
		{Filter{Grep: "b+"}, line("info", "abbc"), true},
		{Filter{Grep: "b+"}, line("info", "acc"), false},
		{Filter{Grep: "a.c"}, line("info", "a.c"), true},
		{Filter{Grep: "plain"}, line("info", "so plain it is"), true},
		{Filter{Grep: "(?i)PLAIN"}, line("info", "so plain it is"), true},
		{Filter{Grep: "plain"}, line("info", "x"), false},
		{Filter{Grep: "e1"}, event(OutcomeOK, "", 200), true},
		{Filter{Grep: "e1"}, line("info", "x"), false},
	} {
		m, err := c.f.parse()
		require.NoError(t, err, "%+v", c.f)
		require.Equal(t, c.want, m.wants(c.e) && m.finds(c.e), "%+v %+v", c.f, c.e)
	}
}

func TestFiltersThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{Worker: "a.b"}, `worker "a.b": a name is`},
		{Filter{Worker: ">"}, `worker ">": a name is`},
		{Filter{Only: "x"}, `only "x": it is logs or events`},
		{Filter{Level: "fatal"}, `level "fatal": it is one of debug, info, warn, error`},
		{Filter{Version: "1 2"}, `version "1 2": it is a version`},
		{Filter{Sample: 1.5}, "sample is 1.5"},
		{Filter{Sample: -1}, "sample is -1"},
		{Filter{Status: []string{"6xx"}}, `status "6xx": it is ok, failed, broken, retry, interrupted`},
		{Filter{Status: []string{"0200"}}, `status "0200"`},
		{Filter{Status: []string{""}}, `status ""`},
		{Filter{Status: []string{"ok"}, Only: OnlyLogs}, "status chooses ended events"},
		{Filter{Status: make([]string, maxStatus+1)}, "status has 17 entries: it has at most 16"},
		{Filter{Grep: "("}, `grep "("`},
		{Filter{Grep: strings.Repeat("a", maxGrep+1)}, "grep has 257 bytes: it has at most 256"},
		{Filter{Grep: `(\pL{1,30}x){1,30}`}, "costs too much"},
		{Filter{Grep: `((\pL{10}){10}){10}`}, "costs too much"},
		{Filter{Grep: strings.Repeat(`\pL{1000}`, 25)}, "costs too much"},
	} {
		err := c.f.Check()
		var field *FieldError
		require.ErrorAs(t, err, &field, "%+v", c.f)
		require.Contains(t, err.Error(), c.want)
	}
}

// Lines and ends of an event are in a sample together, in every process, and the share is right.
func TestSamples(t *testing.T) {
	t.Parallel()
	m, err := Filter{Sample: 0.25}.parse()
	require.NoError(t, err)
	const n = 10_000
	in := 0
	for i := range n {
		l, ev := line("info", "x"), event(OutcomeOK, "", 200)
		l.EventID = fmt.Sprint(i)
		ev.EventID = l.EventID
		require.Equal(t, m.wants(l), m.wants(ev))
		if m.wants(l) {
			in++
		}
	}
	require.InDelta(t, n/4, in, n/40)
}

func FuzzFilter(f *testing.F) {
	f.Add("w", "error", "a{2,3}[b]", "5xx", "12", 0.5, "text")
	f.Add("", "", `(\pL{1,30}x){1,30}`, "", "", 0.0, "")
	f.Fuzz(func(t *testing.T, worker, level, grep, status, version string, sample float64, text string) {
		filter := Filter{Worker: worker, Level: level, Grep: grep, Version: version, Sample: sample}
		if status != "" {
			filter.Status = []string{status}
		}
		m, err := filter.parse()
		if err != nil {
			var field *FieldError
			require.ErrorAs(t, err, &field)
			return
		}
		if re, err := syntax.Parse(grep, syntax.Perl); grep != "" && err == nil {
			prog, err := syntax.Compile(re.Simplify())
			require.NoError(t, err)
			require.LessOrEqual(t, len(prog.Inst), 4*maxGrepSteps, grep)
		}
		for _, e := range []*Entry{line(level, text), event(OutcomeFailed, status, 500)} {
			_ = m.wants(e) && m.finds(e)
		}
	})
}
