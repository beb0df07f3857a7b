package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// longText is a text of JSON with 5000 bytes.
func longText() string { return `"` + strings.Repeat("x", 5000) + `"` }

// listOf is a list of JSON with n equal entries.
func listOf(entry string, n int) string { return "[" + strings.Repeat(entry+",", n-1) + entry + "]" }

// tooMuch sends a long text for a field, or, if it is a list or an object, one with 10001 entries. It returns the last
// refusal.
func tooMuch(send func(value string) (failure string)) (failure string) {
	const many = 10_001
	failure = send(longText())
	var values []string
	switch {
	case strings.HasSuffix(failure, ": it is a list"):
		values = []string{listOf(`0`, many), listOf(`""`, many), listOf(`{}`, many)}
	case strings.HasSuffix(failure, ": it is an object"):
		for _, entry := range []string{`["x"]`, `"x"`} {
			var entries []string
			for i := range many {
				entries = append(entries, fmt.Sprintf(`"H%d":%s`, i, entry))
			}
			values = append(values, "{"+strings.Join(entries, ",")+"}")
		}
	}
	for _, value := range values {
		if failure = send(value); !strings.Contains(failure, " is a JSON ") { // the entries have the right type
			break
		}
	}
	return failure
}

// Every text, list and object that an owner may send has a bound, which its process checks. The refusal names the field
// and the bound. The process itself says which fields there are, so that a new one is tried too.
func TestRequestsOfOwnersAreBounded(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Control = config.ControlByPermissions })
	// Only the size of a message bounds these, or their endpoint: bytes, any JSON, and structs that check themselves.
	const others = " body bodyBase64 value sealed patch metadata bundle spec guard "
	fields := regexp.MustCompile(`^400 unknown field "\?": a request may have ?(.*)$`)
	scalar := regexp.MustCompile(`^400 field "[a-zA-Z]+" is a JSON string: it is (a number|a whole number, 0 or more|true or false)$`)
	tried := 0
	for _, name := range h.ownerNames() {
		ask := func(field, value string) string { // an owner for each endpoint: an owner may ask 100 times at once
			_, failure := askAsOwner(t, h.nc, strings.ReplaceAll(name, ".", "-"), name, fmt.Sprintf(`{%q:%s}`, field, value))
			return failure
		}
		m := fields.FindStringSubmatch(ask("?", "0"))
		require.NotNil(t, m, name)
		for field := range strings.SplitSeq(m[1], ", ") {
			if field == "" || strings.Contains(others, " "+field+" ") {
				continue
			}
			failure := tooMuch(func(value string) string { return ask(field, value) })
			if scalar.MatchString(failure) {
				continue
			}
			require.Regexp(t, `^400 `+field+` has (5000 bytes|10001 entries): it has at most [0-9]+$`, failure, "%s %s", name, field)
			tried++
		}
	}
	require.Greater(t, tried, 100, "fields")

	text := longText()
	for _, c := range [][3]string{
		{"dead.edit", `{"id":1,"removeHeaders":` + listOf(`"X-A"`, 101) + `}`, "400 removeHeaders has 101 entries: it has at most 100"},
		{"dead.replay", `{"all":true,"removeHeaders":` + listOf(`"X-A"`, 101) + `}`, "400 removeHeaders has 101 entries"},
		{"dead.replay", `{"all":true,"rate":1e-9}`, "400 rate is 1e-09: it is a number a second, 0.001 to 1000000"},
		{"dead.purge", `{"ids":` + listOf("1", 1001) + `}`, "400 ids has 1001 entries: by the owner API"},
		{"versions.deploy", `{"worker":"w","spec":{"schedules":` + listOf("{}", 20_000) + `}}`,
			"400 the request has 20003 objects and lists"},
		{"versions.deploy", `{"worker":"w","steps":` + listOf("{}", 20_000) + `}`, "400 the request has 20002 objects and lists"},
		{"files.missing", `{"hashes":[` + text + `]}`, "400 hashes has 5000 bytes"},
		{"files.store", `{"files":[{"type":` + text + `}]}`, "400 type has 5000 bytes"},
		{"versions.deploy", `{"worker":"w","bundle":{"id":` + text + `}}`, "400 id has 5000 bytes"},
	} {
		_, failure := askAsOwner(t, h.nc, "acme", c[0], c[1])
		require.True(t, strings.HasPrefix(failure, c[2]), "%s: %.300s", c[0], failure)
	}
	_, failure := askAsOwner(t, h.nc, "acme", "workers.list", `{"owner":"`+strings.Repeat(`\"[{`, 500)+`"}`)
	require.True(t, strings.HasPrefix(failure, "403 owner"), "text is no structure: %s", failure)
}
