package workers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func specOf(sources ...workers.Source) workers.Spec { return workers.Spec{Sources: sources} }

func TestSourcesThatAManifestMayHave(t *testing.T) {
	t.Parallel()
	for _, s := range []workers.Source{
		{Stream: "ORDERS"},
		{Stream: "ORDERS", Subjects: []string{"orders.created.>", "orders.paid.*"}, Start: workers.Start{From: "all"}},
		{Stream: "orders-2", Start: workers.Start{Sequence: 17}, Connection: "warehouse"},
		{Stream: "ORDERS", Start: workers.Start{Time: "2026-01-02T15:04:05Z"}},
		{Subject: "sensors.*.temperature"},
		{KV: "FLAGS", Keys: []string{"checkout.>", "_hidden"}},
		{Objects: "UPLOADS", Start: workers.Start{From: "new"}},
	} {
		require.NoError(t, specOf(s).Validate(), "%+v", s)
	}
}

func TestSourcesThatAreRefused(t *testing.T) {
	t.Parallel()
	stream := func(subjects ...string) workers.Source { return workers.Source{Stream: "S", Subjects: subjects} }
	for want, list := range map[string][]workers.Source{
		"sources[0].stream is one of":                          {{}},
		"sources[1].stream is one of":                          {{Stream: "A"}, {Stream: "B", KV: "C"}},
		`sources[0].stream is "PINWHEEL_EVENTS"`:               {{Stream: "PINWHEEL_EVENTS"}},
		`sources[0].stream is "Pinwheel_events"`:               {{Stream: "Pinwheel_events"}},
		`sources[0].stream is "KV_PINWHEEL_OWNERS"`:            {{Stream: "KV_PINWHEEL_OWNERS"}},
		`sources[0].stream is "kv_obj_pinwheel_x"`:             {{Stream: "kv_obj_pinwheel_x"}},
		`sources[0].kv is "PINWHEEL_KV_beta"`:                  {{KV: "PINWHEEL_KV_beta"}},
		`sources[0].objects is "pinwheel_OBJ_beta"`:            {{Objects: "pinwheel_OBJ_beta"}},
		`sources[0].stream is "A.B"`:                           {{Stream: "A.B"}},
		`sources[0].stream is "*"`:                             {{Stream: "*"}},
		`sources[0].kv is "A/B"`:                               {{KV: "A/B"}},
		"sources[0].subject is no source":                      {{Subject: ">"}},
		`sources[0].subject is no source: subject "*.events.>`: {{Subject: "*.events.>"}},
		`sources[0].subject is no source: subject "$JS.API`:    {{Subject: "$JS.API.>"}},
		`sources[0].subject is no source: subject "_INBOX`:     {{Subject: "_INBOX.>"}},
		"sources[0].subjects[1] is a.*: it overlaps":           {stream("a.b", "a.*")},
		"sources[0].subjects[0] is no filter":                  {stream("a..b")},
		"sources[0].subjects is for":                           {{KV: "A", Subjects: []string{"a"}}},
		"sources[0].keys is for":                               {{Stream: "A", Keys: []string{"a"}}},
		"sources[0].connection is":                             {{Stream: "A", Connection: "a b"}},
		"sources[0].start is":                                  {{Stream: "A", Start: workers.Start{From: "old"}}},
		"sources[0].start.time is":                             {{Stream: "A", Start: workers.Start{Time: "now"}}},
		"sources[0].start is for":                              {{Subject: "a", Start: workers.Start{From: "all"}}},
		"sources[1] is stream S: it overlaps with sources[0]":  {stream("a.>"), stream("*.b")},
		"sources[1] is stream KV_F: it overlaps":               {{KV: "F", Keys: []string{"a"}}, {Stream: "KV_F"}},
		"sources[1] is subject a.*":                            {{Subject: "a.b"}, {Subject: "a.*"}},
		"sources has 17":                                       make([]workers.Source, 17),
	} {
		err := specOf(list...).Validate()
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, specOf(stream("a.>"), workers.Source{Stream: "S", Subjects: []string{"*.b"},
		Connection: "other"}).Validate(), "another account has other messages")
}

func TestPoliciesGrantSources(t *testing.T) {
	t.Parallel()
	stream := func(name string, subjects ...string) workers.Source {
		return workers.Source{Stream: name, Subjects: subjects}
	}
	for _, c := range []struct {
		pattern string
		source  workers.Source
		may     bool
	}{
		{"stream:ORDERS", stream("ORDERS", "a.b"), true},
		{"stream:ORDERS", stream("orders"), false},
		{"stream:ORDERS", stream("ORDERS2"), false},
		{"stream:SHOP_*", stream("SHOP_A"), true},
		{"stream:SHOP_*", stream("SHO"), false},
		{"stream:ORDERS:orders.>", stream("ORDERS", "orders.new", "orders.old.*"), true},
		{"stream:ORDERS:orders.>", stream("ORDERS"), false},
		{"stream:ORDERS:orders.>", stream("ORDERS", "orders.new", "*.new"), false},
		{"stream:ORDERS:orders.*", stream("ORDERS", "orders.>"), false},
		{"stream:*", workers.Source{KV: "FLAGS"}, false},
		{"kv:FLAGS:checkout.>", workers.Source{KV: "FLAGS", Keys: []string{"checkout.a"}}, true},
		{"kv:FLAGS:checkout.>", workers.Source{KV: "FLAGS"}, false},
		{"objects:UPLOADS", workers.Source{Objects: "UPLOADS"}, true},
		{"subject:sensors.>", workers.Source{Subject: "sensors.*.t"}, true},
		{"subject:sensors.>", workers.Source{Subject: "sensor.t"}, false},
		{"warehouse/stream:S", workers.Source{Stream: "S", Connection: "warehouse"}, true},
		{"warehouse/stream:S", stream("S"), false},
		{"stream:S", workers.Source{Stream: "S", Connection: "warehouse"}, false},
	} {
		p := workers.Policy{Consume: []string{c.pattern}}
		require.NoError(t, p.Validate())
		require.Equal(t, c.may, p.MayConsume(c.source), "%s %+v", c.pattern, c.source)
	}
	require.False(t, workers.Policy{}.MayConsume(stream("ORDERS")), "none by default")
	for _, bad := range []string{"", "ORDERS", "stream:", "stream:PINWHEEL_EVENTS", "kv:pinwheel_x", "objects:A:b",
		"subject:", "subject:$JS.>", "a b/stream:S", "stream:A B", "stream:A*B", "queue:A", "stream:KV_PINWHEEL_*"} {
		require.ErrorContains(t, workers.Policy{Consume: []string{bad}}.Validate(), "consume[0]", bad)
	}
}

// What two patterns have in common, and what one grants, agrees with the subjects that fit them.
func TestOverlapIsThatOfSubjects(t *testing.T) {
	t.Parallel()
	tokens := rapid.SampledFrom([]string{"a", "b", "*"})
	fits := func(pattern, subject string) bool { return workers.Covers([]string{pattern}, subject) }
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string {
			p := strings.Join(rapid.SliceOfN(tokens, 1, 3).Draw(t, name), ".")
			if rapid.Bool().Draw(t, name+">") {
				p += ".>"
			}
			return p
		}
		one, other := draw("one"), draw("other")
		both := false
		var subjects []string
		for n := 1; n <= 5; n++ {
			for i := range 1 << n {
				parts := make([]string, n)
				for j := range parts {
					parts[j] = string("ab"[i>>j&1])
				}
				subjects = append(subjects, strings.Join(parts, "."))
			}
		}
		for _, s := range subjects {
			both = both || fits(one, s) && fits(other, s)
			if fits(other, s) && workers.Covers([]string{one}, other) {
				require.True(t, fits(one, s), "%s covers %s, and not %s", one, other, s)
			}
		}
		require.Equal(t, both, workers.Overlap(one, other), "%s %s", one, other)
	})
}

func TestStartIsWrittenAsManifestsHaveIt(t *testing.T) {
	t.Parallel()
	for text, start := range map[string]workers.Start{
		`"all"`: {From: "all"}, `{"sequence":7}`: {Sequence: 7},
		`{"time":"2026-01-02T15:04:05Z"}`: {Time: "2026-01-02T15:04:05Z"},
	} {
		b, err := json.Marshal(start)
		require.NoError(t, err)
		require.JSONEq(t, text, string(b))
		var back workers.Start
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, start, back)
	}
	b, err := json.Marshal(workers.Source{Stream: "S"})
	require.NoError(t, err)
	require.JSONEq(t, `{"stream":"S"}`, string(b))
}

func FuzzConsumePatterns(f *testing.F) {
	for _, s := range []string{"stream:ORDERS", "warehouse/kv:F:a.>", "subject:a.*", "objects:U*", "/:", "stream:*"} {
		f.Add(s, "ORDERS", "a.b")
	}
	f.Fuzz(func(t *testing.T, pattern, stream, subject string) {
		p := workers.Policy{Consume: []string{pattern}}
		s := workers.Source{Stream: stream, Subjects: []string{subject}}
		if p.Validate() != nil || specOf(s).Validate() != nil || !p.MayConsume(s) {
			return
		}
		if strings.Contains(strings.ToUpper(stream), "PINWHEEL_") && !strings.Contains(fmt.Sprint(pattern), "*") {
			require.NotRegexp(t, `(?i)^((KV|OBJ)_)*PINWHEEL_`, stream)
		}
	})
}
