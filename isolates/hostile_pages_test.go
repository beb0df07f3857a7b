package isolates

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// phrases map the message of an event's failure to the limit that ended it. The first that matches counts.
var phrases = []struct{ message, limit string }{
	{`^CPU time limit`, "CPU time"},
	{`^wall-clock limit`, "wall-clock time"},
	{`can never finish`, "nothing left to wait for"},
	{`^heap limit|terminated by V8`, "heap"},
	{`single value was too large`, "V8's largest value"},
	{`Array buffer allocation failed|Invalid array buffer|Invalid typed array length`, "ArrayBuffers"},
	{`Maximum call stack`, "V8's stack"},
	{`Invalid string length`, "V8's longest string"},
	{`Invalid array length`, "V8's longest array"},
	{`Maximum BigInt size`, "V8's largest BigInt"},
	{`more than \d+ timers`, "timers at once"},
	{`too many commands`, "commands of a turn"},
	{`subrequest`, "subrequests"},
	{`headers? .*at most`, "headers of a response"},
	{`is disallowed for this context`, "no code from strings"},
	{``, "its own exception"},
}

// limitOf says what ended an event, in words for people.
func limitOf(s *script, o *outcome) string {
	switch {
	case o.end.Failure != nil:
		return limitNamed(o.end.Failure.Message)
	case s.cut:
		return "wall-clock time, in `waitUntil`"
	}
	return ""
}

func limitNamed(message string) string {
	for _, p := range phrases {
		if regexp.MustCompile(p.message).MatchString(message) {
			return p.limit
		}
	}
	return ""
}

// usual is the limit for an outcome if nothing else is known.
var usual = map[string]string{"cpu": "CPU time", "timeout": "wall-clock time", "memory": "heap"}

const (
	tablePage  = "../docs/development/hostile.md"
	limitsPage = "../docs/reference/limits.md"
	tableBegin = "<!-- hostile scripts: make hostile UPDATE=1 writes what follows -->"
	tableEnd   = "<!-- end of hostile scripts -->"
)

// checkPages compares the pages under docs with the scripts and with their measured results, or rewrites them.
func checkPages(t *testing.T, all []script, seen map[string]ordeal) {
	t.Helper()
	if *update {
		require.True(t, wholeSuite && len(seen) == len(all), "only a run of all scripts may write the pages")
		writeBetween(t, tablePage, renderTable(all, seen))
		writeBetween(t, limitsPage, renderSummary(all))
		return
	}
	const hint = "the page is old: make hostile UPDATE=1"
	require.Equal(t, renderSummary(all), between(t, limitsPage), hint)
	rows := map[string][]string{}
	for _, line := range strings.Split(between(t, tablePage), "\n") {
		if cells := strings.Split(strings.Trim(line, "| "), " | "); strings.HasPrefix(line, "| `") {
			require.Len(t, cells, 5, line)
			rows[strings.Trim(cells[0], "`")] = cells
		}
	}
	require.Len(t, rows, len(all), hint)
	for _, s := range all {
		row := rows[s.name]
		require.NotNil(t, row, "no row for %s: %s", s.name, hint)
		require.Equal(t, []string{s.told(), s.ends(), s.thread()}, []string{row[1], row[2], row[4]}, "%s: %s", s.name, hint)
		// If a script may end in several ways, the row need not name all limits.
		if r, ran := seen[s.name]; ran && len(s.outcomes) == 1 && r.Outcomes[len(r.Outcomes)-1] == s.outcomes[0] &&
			r.EndedBy != "" {
			require.Contains(t, row[3], r.EndedBy, "%s: %s", s.name, hint)
		}
	}
}

// told describes the script in the form for a table cell.
func (s *script) told() string {
	return strings.NewReplacer("|", "¦", "*", "\\*", "<", "&lt;").Replace(s.what)
}

// ends returns how the script may end, the usual way first.
func (s *script) ends() string { return strings.Join(s.outcomes, " or ") }

// thread says what happens to the thread.
func (s *script) thread() string {
	switch {
	case s.parks:
		return "lost: V8 gives up"
	case s.endless:
		return "lost: does not come back"
	case s.strays:
		return "replaced; ends later"
	}
	return "kept"
}

func (s *script) usualLimits() (list []string) {
	for _, o := range s.outcomes {
		if limit, ok := usual[o]; ok {
			list = append(list, limit)
		}
	}
	return list
}

func renderTable(all []script, seen map[string]ordeal) string {
	var b strings.Builder
	area := ""
	for _, s := range all {
		if s.area() != area {
			area = s.area()
			fmt.Fprintf(&b, "\n## %s\n\n| script | what it does | outcome | ended by | thread |\n|---|---|---|---|---|\n", area)
		}
		var limits []string
		if limit := seen[s.name].EndedBy; limit != "" {
			limits = append(limits, limit)
		}
		if last := seen[s.name].Outcomes; !slices.Contains(last, "ok") || len(s.outcomes) > 1 {
			for _, limit := range s.usualLimits() {
				if !slices.Contains(limits, limit) && (limit != "heap" || !slices.Contains(last, "memory")) &&
					(limit != "wall-clock time" || !slices.Contains(last, "timeout")) {
					limits = append(limits, limit)
				}
			}
		}
		if len(limits) == 0 {
			limits = []string{"itself"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.name, s.told(), s.ends(), strings.Join(limits, " or "),
			s.thread())
	}
	return b.String() + "\n"
}

// renderSummary counts the scripts of each area by how they usually end.
func renderSummary(all []script) string {
	var b strings.Builder
	b.WriteString("\n| area | scripts | ok | exception | cpu | memory | timeout | cost a thread |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	row := func(name string, list []script) {
		count := func(f func(script) bool) (n int) {
			for _, s := range list {
				if f(s) {
					n++
				}
			}
			return n
		}
		fmt.Fprintf(&b, "| %s | %d |", name, len(list))
		for _, o := range []string{"ok", "exception", "cpu", "memory", "timeout"} {
			fmt.Fprintf(&b, " %d |", count(func(s script) bool { return s.outcomes[0] == o }))
		}
		fmt.Fprintf(&b, " %d |\n", count(func(s script) bool { return s.apart() }))
	}
	for rest := all; len(rest) > 0; {
		area := rest[0].area()
		n := slices.IndexFunc(rest, func(s script) bool { return s.area() != area })
		if n < 0 {
			n = len(rest)
		}
		row("["+area+"](../development/hostile.md#"+area+")", rest[:n])
		rest = rest[n:]
	}
	row("all", all)
	b.WriteString("\n")
	return b.String()
}

func between(t *testing.T, path string) string {
	t.Helper()
	_, table, _ := cutPage(t, path)
	return string(table)
}

func writeBetween(t *testing.T, path, table string) {
	t.Helper()
	head, _, tail := cutPage(t, path)
	require.NoError(t, os.WriteFile(path, slices.Concat(head, []byte(table), tail), 0o644))
}

// cutPage splits a page at the two marker lines, which stay with the head and the tail.
func cutPage(t *testing.T, path string) (head, table, tail []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(text, []byte(tableBegin+"\n"))
	end := bytes.Index(text, []byte(tableEnd))
	require.True(t, at >= 0 && end > at, "%s has the lines %s and %s", path, tableBegin, tableEnd)
	at += len(tableBegin) + 1
	return text[:at], text[at:end], text[end:]
}
