package assets

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// A pattern matches what a regular expression matches, and its values make the path again.
func TestPatternsAreRegularExpressions(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(list string, n int) string {
		var b strings.Builder
		for range rnd.IntN(n) {
			b.WriteByte(list[rnd.IntN(len(list))])
		}
		return b.String()
	}
	matched := 0
	for range 20_000 {
		text := "/"
		for _, c := range pick("a-/:::*b", 12) {
			if c == ':' {
				text += fmt.Sprint(":n", len(text), "-")
			} else {
				text += string(c)
			}
		}
		p, err := newPattern(text)
		if err != nil {
			continue
		}
		expression := placeholder.ReplaceAllStringFunc(text, func(name string) string {
			if name == "*" {
				return "(.*)"
			}
			return "([^/]+)"
		})
		re := regexp.MustCompile("^" + expression + "$")
		for range 10 {
			path := "/" + pick("a-/b", 12)
			found, ok := p.match(path)
			require.Equal(t, re.MatchString(path), ok, "seed %d: %s %s", seed, text, path)
			if ok {
				matched++
				before, after, has := strings.Cut(text, "*")
				made := fill(before, found)
				if has {
					made += fill(":splat", found) + fill(after, found)
				}
				require.Equal(t, path, made, "seed %d: %s", seed, text)
			}
		}
	}
	require.Greater(t, matched, 200)
}

func TestPatternsOfEscapes(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{ // pattern, path, what /:a/:b/:splat becomes
		{"/%6fld/:a", "/o%6cd/x%2fy", "/x%2Fy/:b/:splat"}, {"/old/:a", "/%6Fld/caf\u00e9", "/caf%C3%A9/:b/:splat"},
		{"/:a-:b", "/1-2-3", "/1-2/3/:splat"},
		{"/x/*/:a", "/x/1/2/3", "/3/:b/1/2"}, {"/*", "//evil.example", "/:a/:b//evil.example"}, {"/:a%32F", "/x%2F", ""},
		{"/:a%32F", "/x%2F2F", "/x%2F/:b/:splat"}, {"/p-*2F:a", "/p-%2Fx", ""},
		{"/:a%2f:b", "/x%2Fy", "/x/y/:splat"}, {"/a", "/%61", "/:a/:b/:splat"}, {"/a", "/A", ""}, {"/:a/x", "//x", ""},
		{"/a/*", "/a", ""}, {"/a/*", "/a/", "/:a/:b/"},
	} {
		p, err := newPattern(c[0])
		require.NoError(t, err, c)
		found, ok := p.match(workers.NewPath(c[1]).Canonical())
		got := ""
		if ok {
			got = fill("/:a/:b/:splat", found)
		}
		require.Equal(t, c[2], got, c)
	}
}

// Each bound of a list is checked where it is decoded, whoever encoded it, and before anything large is made of it.
func TestBoundsOfLists(t *testing.T) { // alone: it measures the memory of the process
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.Contains(format, "%d") {
				fmt.Fprintf(&b, format, i)
			} else {
				b.WriteString(format)
			}
		}
		return b.String()
	}
	placeholders := strings.Repeat("/:x", 16) // all have other names
	for i := range 17 {
		placeholders = strings.Replace(placeholders, ":x", fmt.Sprint(":n", i), 1)
	}
	rule := func(from, to string) string { return fmt.Sprintf(`{"from":%q,"to":%q,"status":301}`, from, to) }
	for name, c := range map[string]struct{ text, want string }{
		"60 000 redirects": {`{"files":{},"redirects":[` + many(60_000, `{"from":"/%d/:a/:b","to":"/x","status":301}`) + `]}`,
			"more than 20000 files, 2100 redirects"},
		"empty redirects":      {`{"redirects":[` + many(2_000_000, `{}`) + `]}`, "more than 20000 files, 2100 redirects"},
		"empty headers":        {`{"headers":[{"path":"/","set":[` + many(2_000_000, `[]`) + `]}]}`, "more than 20000 files"},
		"empty names":          {`{"headers":[{"path":"/","remove":[` + many(2_000_000, `""`) + `]}]}`, "more than 20000 files"},
		"2001 fixed":           {`{"redirects":[` + many(2001, `{"from":"/%d","to":"/x","status":301}`) + `]}`, "more than 2000 rules"},
		"101 dynamic":          {`{"redirects":[` + many(101, `{"from":"/%d/*","to":"/x","status":301}`) + `]}`, "more than 100 with"},
		"101 paths of headers": {`{"headers":[` + many(101, `{"path":"/%d"}`) + `]}`, "at most 2100 and 100"},
		"101 headers":          {`{"headers":[{"path":"/","remove":[` + many(101, `"X-%d"`) + `]}]}`, "more than 100 headers"},
		"17 placeholders":      {`{"redirects":[` + rule(placeholders+"/*", "/x") + `]}`, "more than 16 placeholders"},
		"340 placeholders":     {`{"redirects":[` + rule(strings.Repeat("/:a", 340), "/x") + `]}`, "more than 16 placeholders"},
		"340 in a target": {`{"redirects":[` + rule("/:a", strings.Repeat("/:a", 340)) + `]}`,
			"the target has more than 16 placeholders"},
		"a long target": {`{"redirects":[` + rule("/a", "/"+strings.Repeat("x", 2000)) + `]}`, "the target has 2001 bytes"},
		"a long value": {`{"headers":[{"path":"/:a","set":[["X","` + strings.Repeat("x", 2001) + `"]]}]}`,
			"the value of X has 2001 bytes"},
		"340 in a value": {`{"headers":[{"path":"/:a","set":[["X","` + strings.Repeat(":a", 340) + `"]]}]}`,
			"the value of X has more than 16"},
		"a long path": {`{"redirects":[` + rule("/"+strings.Repeat("x", 1024), "/x") + `]}`, "at most 1024 bytes"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode([]byte(c.text))
		runtime.ReadMemStats(&after)
		var list *ListError
		require.True(t, errors.As(err, &list), name)
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "%s: bytes", name)
	}
	_, err := Decode([]byte(`{"redirects":[` + rule(placeholders, "/x") + `,` +
		many(2000, `{"from":"/%d","to":"/x","status":301}`) + `]}`))
	require.NoError(t, err)
	_, _, err = parseRedirects([]byte("\n /x /y\n" + strings.Repeat("/:a", 340) + " /x"))
	require.ErrorContains(t, err, "_redirects:3:1: ")
	require.ErrorContains(t, err, "has more than 16 placeholders")
	_, _, err = parseRedirects([]byte("/:a:b /x"))
	require.ErrorContains(t, err, "_redirects:1:1: \"/:a:b\" has two placeholders side by side")
}
