package workers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSubjectsOfHandlers(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "orders.new", "a.b-c_d.E/9", "a.$b", "a._INBOX"} {
		require.NoError(t, CheckSubject(s), s)
	}
	for s, want := range map[string]string{
		"": "an empty token", ".": "an empty token", "a.": "an empty token", ".a": "an empty token", "a..b": "an empty token",
		"a b": "another character", "a\tb": "another character",
		"a\r\nPUB x 1": "another character", "a\x00": "another character", "ä": "another character",
		"a\x7f": "another character", "*": "a wildcard", "a.>": "a wildcard", "a.b*": "a wildcard",
		"$JS.API.STREAM.DELETE.X": "begins with $", "_INBOX.x": "begins with _", strings.Repeat("a", 257): "has 257 bytes",
	} {
		require.ErrorContains(t, CheckSubject(s), want, s)
	}
	for _, s := range []string{">", "*", "a.*.b", "a.>", "*.>"} {
		require.NoError(t, CheckSubjectPattern(s), s)
	}
	for _, s := range []string{"a.>.b", "a>", "a.b*", "**", "$JS.>", "_INBOX.>"} {
		require.Error(t, CheckSubjectPattern(s), s)
	}
}

// What a pattern covers, all of that matches the pattern.
func TestCoveredSubjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wide, pattern string
		want          bool
	}{
		{"a.>", "a.b", true}, {"a.>", "a", false}, {"a.>", "a.>", true}, {"a.>", "a.*.>", true}, {"a.*", "a.>", false},
		{"a.*", "a.*", true}, {"a.b", "a.*", false},
		{">", "a", true}, {">", ">", true}, {"*", ">", false}, {"a", "a.b", false}, {"a.b", "a", false}, {"*.b", "a.b", true},
		{"a", "A", false},
	} {
		require.Equal(t, c.want, Covers([]string{"x", c.wide}, c.pattern), "%s %s", c.wide, c.pattern)
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`([ab*]\.){0,3}[ab*>]`)
		wide, narrow := pattern.Draw(t, "wide"), pattern.Draw(t, "narrow")
		subject := rapid.StringMatching(`([ab]\.){0,3}[ab]`).Draw(t, "subject")
		if covers(wide, narrow) && covers(narrow, subject) {
			require.True(t, covers(wide, subject))
		}
	})
}

func TestPolicyGrantsSubjects(t *testing.T) {
	t.Parallel()
	b := Bindings{NATS: map[string]NATSSubjects{"BUS": {Publish: []string{"orders.*", "x.>"},
		Request: []string{"billing.pay"}}}}
	require.NoError(t, b.Validate())
	require.NoError(t, Policy{NATSPublish: []string{"orders.>", "x.>"}, NATSRequest: []string{"billing.*"}}.MayReach(b))
	require.ErrorContains(t, Policy{}.MayReach(b), "nats.BUS.publish[0] is orders.*, which the owner is not granted: an operator grants it with 'pinwheel owners set OWNER --nats-publish orders.*'")
	require.ErrorContains(t, Policy{NATSPublish: []string{">"}}.MayReach(b), "nats.BUS.request[0] is billing.pay")
	require.ErrorContains(t, Policy{NATSPublish: []string{"a", "$JS.>"}}.Validate(), "natsPublish[1] is no subject")
	require.ErrorContains(t, Bindings{NATS: map[string]NATSSubjects{"BUS": {}}}.Validate(),
		"nats.BUS has neither publish nor request")
	require.ErrorContains(t, Bindings{NATS: map[string]NATSSubjects{"BUS": {Request: []string{"a..b"}}}}.Validate(),
		`nats.BUS.request[0] is no subject: subject "a..b" has an empty token`)
	require.Equal(t, b, Bindings{}.With(b))
	require.Equal(t, []Binding{{BindingNATS, "BUS", `{"publish":["orders.*","x.>"],"request":["billing.pay"]}`}}, b.Env())
}
