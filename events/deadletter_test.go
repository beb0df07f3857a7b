package events

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// letter draws one as it comes out of the stream: encoded and decoded.
func letter(t *rapid.T) *DeadLetter {
	h := headers(t)
	if rapid.Bool().Draw(t, "bytes") {
		h["X-Bytes"] = []string{"\xff\xfe", rapid.StringMatching(`[!-~]{0,5}`).Draw(t, "beside")}
	}
	d := NewDeadLetter(&Event{Owner: "acme", Worker: "w", ID: "e", Header: h, Body: rapid.SliceOf(rapid.Byte()).
		Draw(t, "body"), Origin: stored("task", "acme", "w")},
		NewFailure(ReasonCPU, rapid.StringMatching(`[!-~ä☃]{0,60}`).Draw(t, "message"), rapid.String().Draw(t, "stack")),
		"1-a", "n", 2, instant(t, "at"))
	d.FirstAt = instant(t, "first")
	got, err := DecodeDeadLetter(rapid.Uint64Range(1, 1<<53).Draw(t, "seq"), d.Encode(), d.Body)
	require.NoError(t, err)
	return got
}

func TestDeadLetterAsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := letter(t)
		text, err := json.Marshal(d.JSON(true))
		require.NoError(t, err)
		require.NotContains(t, string(text), "\n")
		got, err := ParseLetter(text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, string(d.Body), string(got.Body))
		got.Body = d.Body
		require.Equal(t, d, got)
	})
}

func TestParseLetterSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := NewDeadLetter(&Event{Owner: "a", Worker: "b", ID: "e", Body: []byte("x"), Origin: stored("task", "a", "b")},
		f2(), "1-a", "n", 1, storedAt)
	good.FirstAt = storedAt
	text, err := json.Marshal(good.JSON(true))
	require.NoError(t, err)
	_, err = ParseLetter(text)
	require.NoError(t, err)
	for from, want := range map[string]string{
		`"reason":"cpu"|"reason":"odd"`:                                  `reason "odd": it is one of exception`,
		`"stream":"PINWHEEL_EVENTS"|"stream":"a.b"`:                      `stream "a.b"`,
		`"bodyBytes":1|"bodyBytes":2`:                                    "its body has 1 bytes, and bodyBytes is 2",
		`"owner"|"odd":1,"owner"`:                                        `unknown field "odd"`,
		`"headers":null|"headers":{"X":["a\nb"]}`:                        "header X",
		`"headers":null|"headers":{"a b":["x"]}`:                         `header "a b"`,
		`"headers":null|"onDeadLetter":{},"headers":null`:                "", // nobody
		`"headers":null|"onDeadLetter":{"subject":"a.>"},"headers":null`: "onDeadLetter.subject",
		`"attempts":1|"attempts":-1`:                                     "attempts -1",
		`}|} {}`:                                                         "something follows",
	} {
		old, new, _ := strings.Cut(from, "|")
		changed := strings.Replace(string(text), old, new, 1)
		require.NotEqual(t, string(text), changed, from)
		_, err := ParseLetter([]byte(changed))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "not a dead letter: ", from)
		require.ErrorContains(t, err, want, from)
	}
}

func TestEditADeadLetter(t *testing.T) {
	t.Parallel()
	d := &DeadLetter{Seq: 4, EventID: "e", Stream: "S", StreamSeq: 9, At: storedAt,
		Header: Header{"X": {"1"}, "content-type": {"a"}, "Nats-Msg-Id": {"m"}},
		Body:   []byte(`{"a":1,"b":{"c":2,"d":"<3"},"n":12345678901234567890}`)}
	at := storedAt.Add(time.Hour)
	got, err := d.Edit(Edit{Patch: []byte(`{"a":null,"b":{"c":[1]},"e":"ü"}`),
		Set: Header{"Content-Type": {"b"}, "Y": {"2", "3"}}, Remove: []string{"x"}}, at)
	require.NoError(t, err)
	require.JSONEq(t, `{"b":{"c":[1],"d":"<3"},"e":"ü","n":12345678901234567890}`, string(got.Body))
	require.Contains(t, string(got.Body), "<3")
	require.Contains(t, string(got.Body), "12345678901234567890", "a number keeps its digits")
	require.Equal(t, Header{"Content-Type": {"b"}, "Y": {"2", "3"}, "Nats-Msg-Id": {"m"}}, got.Header)
	require.Equal(t, at, got.Edited)
	require.Equal(t, d.Identity(), got.Identity())
	require.Equal(t, Header{"X": {"1"}, "content-type": {"a"}, "Nats-Msg-Id": {"m"}}, d.Header, "the old one stays")

	got, err = d.Edit(Edit{Body: []byte{}}, at)
	require.NoError(t, err)
	require.Empty(t, got.Body)
	for want, e := range map[string]Edit{
		"not both":              {Body: []byte("x"), Patch: []byte("{}")},
		"the patch is not JSON": {Patch: []byte("{")},
		"header Nats-Rollup":    {Set: Header{"Nats-Rollup": {"all"}}},
		"header dead-reason":    {Remove: []string{"dead-reason"}},
		"header event-id":       {Set: Header{"event-id": {"x"}}},
		"header X \"a\\nb\"":    {Set: Header{"X": {"a\nb"}}},
		`header "a b"`:          {Set: Header{"a b": {"x"}}},
	} {
		_, err := d.Edit(e, at)
		require.ErrorContains(t, err, want)
	}
	_, err = (&DeadLetter{Seq: 4, Body: []byte("plain")}).Edit(Edit{Patch: []byte("{}")}, at)
	require.ErrorContains(t, err, "dead letter 4: its body is not JSON")
}

func TestMergePatchIsRFC7396(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{ // appendix A
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`}, {`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`}, {`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		got, err := mergePatch([]byte(c[0]), []byte(c[1]))
		require.NoError(t, err)
		require.JSONEq(t, c[2], string(got), "%q", c)
	}
}

func TestReplayToAnotherVersion(t *testing.T) {
	t.Parallel()
	d := &DeadLetter{Kind: "task", Owner: "a", Worker: "w", EventID: "e",
		Header: Header{"worker-version": {"3"}, "Dead-Replay": {"old"}, "Dead-Of": {"x"}}}
	for to, want := range map[Target][2]string{
		{}:                          {"pinwheel.events.task.a.w", "3"},
		{Worker: "w"}:               {"pinwheel.events.task.a.w", ""},
		{Version: "7"}:              {"pinwheel.events.task.a.w", "7"},
		{Worker: "x", Version: "8"}: {"pinwheel.events.task.a.x", "8"},
	} {
		subject, h, err := d.Replay(DefaultPrefix, to)
		require.NoError(t, err)
		require.Equal(t, want[0], subject)
		require.Equal(t, want[1], h.Get(HeaderWorkerVersion)+h.Get("worker-version"), "%v", to)
		require.Empty(t, h.Get(HeaderReplay))
		require.Equal(t, "x", h.Get(HeaderDeadOf), "it still tells of a dead letter")
	}
	for s, want := range map[string]Target{"w": {Worker: "w"}, "w@12": {"w", "12"},
		"@12-0123456789ab": {Version: "12-0123456789ab"}} {
		to, err := ParseTo(s)
		require.NoError(t, err)
		require.Equal(t, want, to)
		require.Equal(t, s, to.String())
	}
	for _, s := range []string{"", "@", "w@", "w@x", "w@0", "a.b", "o/w", "w@1-zz", "w@1-0123456789abc"} {
		_, err := ParseTo(s)
		require.Error(t, err, s)
	}
}

func TestReplayMark(t *testing.T) {
	t.Parallel()
	d := &DeadLetter{Stream: "S", StreamSeq: 4, At: storedAt, Replays: 2}
	id, nonce, ok := ParseReplayMark(d.ReplayMark("N1"))
	require.True(t, ok)
	require.Equal(t, []string{d.ReplayID(), "N1"}, []string{id, nonce})
	require.True(t, strings.HasSuffix(id, ".3"))
	imported := *d
	imported.Imported = storedAt
	require.NotEqual(t, d.Identity(), imported.Identity())
	for _, v := range []string{"", "x", "a.1.b", d.Identity() + ".1", d.Identity() + ".0.n", d.Identity() + ".01.n",
		d.Identity() + ".1.a.b", d.Identity() + ".1.*"} {
		_, _, ok := ParseReplayMark(v)
		require.False(t, ok, v)
	}
}

func TestDeadHook(t *testing.T) {
	t.Parallel()
	for _, h := range []DeadHook{{}, {Worker: "w"}, {Subject: "a.b:c"}, {Subject: "a", JetStream: true}} {
		got, err := parseDeadHook(h.String())
		require.NoError(t, err)
		require.Equal(t, h, got)
	}
	for _, h := range []DeadHook{{}, {Worker: "a.b"}, {Worker: "a", Subject: "b"}, {Worker: "a", JetStream: true},
		{Subject: "a.*"}, {Subject: "$JS.x"}} {
		require.ErrorContains(t, h.Validate(), "onDeadLetter", "%+v", h)
	}
	_, err := parseDeadHook("odd:x")
	require.ErrorContains(t, err, `"odd:x": it is worker:NAME`)
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	var runs []FailedRun
	for i := range 30 {
		runs = append(runs, FailedRun{At: storedAt, Attempt: i + 1, Reason: ReasonException,
			Message: strings.Repeat("ä", 500), Node: strings.Repeat("n", 500)})
	}
	text := encodeHistory(runs)
	require.Less(t, len(text), 8<<10)
	got, err := decodeHistory(text)
	require.NoError(t, err)
	require.Len(t, got, MaxHistory)
	require.Equal(t, 30, got[MaxHistory-1].Attempt)
	require.Len(t, got[0].Message, MaxHistoryMessage)
}
