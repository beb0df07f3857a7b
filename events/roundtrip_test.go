package events

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// headers draws headers as a hostile publisher would choose them: names of ours, names of the
// server's, names that look like the result of encoding.
func headers(t *rapid.T) Header {
	name := rapid.OneOf(
		rapid.StringMatching(`[A-Za-z][A-Za-z0-9-]{0,12}`),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
			"Dead-", "dead-", "Dead-Original-", "Parked-", "Parked-Original-", "Nats-", "Reason", "Replays", "Seq", "Msg-Id",
			"Status",
		}), 1, 4), func(parts []string) string { return strings.Join(parts, "") + "x" }),
		rapid.SampledFrom([]string{
			"Status", "Description", "Nats-Msg-Id", "Nats-Rollup", "Dead-Reason", "Dead-Replays", "Dead-Original-Dead-Reason",
			"Reply-To", "Event-Id", "Deadline", "Parked-Subject", "Parked-Original-Status", "dead-seq",
		}),
	)
	h := make(Header)
	for range rapid.IntRange(0, 8).Draw(t, "headers") {
		h[name.Draw(t, "name")] = rapid.SliceOfN(rapid.StringMatching(`[!-~]{0,10}`), 1, 3).Draw(t, "values")
	}
	return h
}

func instant(t *rapid.T, what string) time.Time {
	return time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, what)).UTC()
}

func TestDeadLetterRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
		d := &DeadLetter{
			Seq: rapid.Uint64().Draw(t, "seq"), Owner: name.Draw(t, "owner"), Worker: name.Draw(t, "worker"),
			Kind:    rapid.SampledFrom([]string{"fetch", "task", "scheduled", "odd"}).Draw(t, "kind"),
			EventID: rapid.StringMatching(`[!-~]{1,20}`).Draw(t, "id"),
			Failure: *NewFailure(rapid.SampledFrom(Reasons[:]).Draw(t, "reason"), rapid.StringMatching(`[ -~ä☃]{0,60}`).
				Draw(t, "message"), rapid.String().Draw(t, "stack")),
			Version: rapid.StringMatching(`([0-9]-[0-9a-f]{12})?`).Draw(t, "version"), Node: "n1",
			Attempts: rapid.IntRange(0, 100).Draw(t, "attempts"), Replays: rapid.IntRange(0, 100).Draw(t, "replays"),
			FirstAt: instant(t, "first"), At: instant(t, "at"),
			Subject: "pinwheel.events.3.task.a.b", Stream: "S", StreamSeq: rapid.Uint64().Draw(t, "streamSeq"),
			Header: headers(t), Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			Hook: rapid.SampledFrom([]DeadHook{{}, {Worker: "w"}, {Subject: "a.b"}, {Subject: "a:b", JetStream: true}}).
				Draw(t, "hook"),
		}
		for i := range rapid.IntRange(0, MaxHistory).Draw(t, "runs") {
			d.History = append(d.History, FailedRun{
				At: instant(t, "run"), Attempt: i + 1, Reason: ReasonException, Message: rapid.StringMatching(`[ -~ä☃]{0,60}`).
					Draw(t, "why"), Node: "n",
			})
		}
		if rapid.Bool().Draw(t, "edited") {
			d.Edited, d.Imported, d.Stored = instant(t, "edit"), instant(t, "import"), instant(t, "stored")
		}
		encoded := d.Encode()
		for name := range encoded {
			require.False(t, serverHonoured(name), "%s would mean something to the server", name)
		}
		for _, added := range []string{"Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"} {
			encoded.Set(added, "set by whoever stores it")
		}
		got, err := DecodeDeadLetter(d.Seq, encoded, d.Body)
		require.NoError(t, err)
		require.Equal(t, d, got)
	})
}

func TestDeadLetterReplay(t *testing.T) {
	t.Parallel()
	e, f := testDecoder.Decode(stored("task", "acme", "hello"), Header{
		"Nats-Msg-Id": {"m1"}, "X": {"y", "z"}, "Deadline": {"2020-01-01T00:00:00Z"}, "Dead-Replays": {"2"},
		"Reply-To": {"_INBOX.a"}, "Status": {"409"},
	}, []byte("body"), storedAt)
	require.Nil(t, f)
	d := NewDeadLetter(e, Fail(ReasonExpired, "late"), "1-a", "n1", 3, storedAt.Add(time.Hour))
	require.Equal(t, 2, d.Replays)
	require.Equal(t, "task", d.Kind)
	stored, err := DecodeDeadLetter(7, d.Encode(), d.Body)
	require.NoError(t, err)
	require.Equal(t, e.Header, stored.Header, "with what the server gives a meaning to")

	subject, h, err := stored.Replay(DefaultPrefix, Target{})
	require.NoError(t, err)
	require.Equal(t, "pinwheel.events.task.acme.hello", subject)
	require.Equal(t, Header{"X": {"y", "z"}, "Reply-To": {"_INBOX.a"}, "Event-Id": {"m1"}, "Dead-Replays": {"3"}}, h)
	again, f := testDecoder.Decode(e.Origin, h, d.Body, storedAt)
	require.Nil(t, f)
	require.Equal(t, "m1", again.ID)
	require.Equal(t, 3, NewDeadLetter(again, f2(), "", "", 1, storedAt).Replays)

	for _, spoil := range []func(*DeadLetter){
		func(d *DeadLetter) { d.Kind = "odd" }, func(d *DeadLetter) { d.Owner = "a.b" },
		func(d *DeadLetter) { d.Worker = "" },
	} {
		bad := *stored
		spoil(&bad)
		_, _, err := bad.Replay(DefaultPrefix, Target{})
		require.ErrorContains(t, err, "dead letter 7 cannot be replayed")
	}
}

func f2() *Failure { return Fail(ReasonCPU, "x") }

func TestDeadLetterOfUnknownSubject(t *testing.T) {
	t.Parallel()
	e, f := testDecoder.Decode(Origin{Stream: "S", Subject: "pinwheel.x", Seq: 3}, nil, nil, storedAt)
	d := NewDeadLetter(e, f, "", "n", 0, storedAt)
	require.Equal(t, "unknown", d.Kind)
	_, err := DecodeDeadLetter(1, d.Encode(), nil)
	require.NoError(t, err)
}

func TestDecodeDeadLetterSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := (&DeadLetter{Failure: *f2()}).Encode()
	for name, value := range map[string]string{
		"Dead-Seq": "x", "Dead-Attempts": "", "Dead-First-At": "never", "Dead-At": "", "Dead-Stack": "%zz",
	} {
		h := make(Header)
		for k, v := range good {
			h[k] = v
		}
		h.Set(name, value)
		_, err := DecodeDeadLetter(1, h, nil)
		require.ErrorContains(t, err, name)
	}
}

func TestParkedRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := headers(t)
		origin := stored("task", "acme", "hello")
		e, f := testDecoder.Decode(origin, h, []byte("{}"), instant(t, "stored"))
		runs := Runs{rapid.IntRange(1, 50).Draw(t, "attempt"), rapid.IntRange(0, 3).Draw(t, "crashes")}
		parked := EncodeParked(e, runs)
		for name := range parked {
			require.False(t, serverHonoured(name), name)
		}
		parked.Set("Nats-Msg-Id", ParkedID(e))
		parkedOrigin := Origin{Stream: "PARKED", Subject: "pinwheel.parked.acme.task.hello", Seq: 9}
		got, gotRuns, gotF := testDecoder.DecodeParked(parkedOrigin, parked, e.Body, storedAt)
		require.Equal(t, runs, gotRuns)
		require.Equal(t, f == nil, gotF == nil)
		require.Equal(t, parkedOrigin.Seq, got.Origin.Seq)
		require.Equal(t, origin.Subject, got.Origin.Subject)
		got.Origin = e.Origin
		sortPairs(e.HTTPHeaders)
		sortPairs(got.HTTPHeaders)
		if f == nil { // of a malformed one it depends on the order of headers how far it was read
			e.First, e.DeliverAt = e.FirstStored(), time.Time{}
			require.Equal(t, e, got)
		}
		require.Equal(t, e.Header, got.Header)
	})
	e, runs, f := testDecoder.DecodeParked(Origin{Seq: 4}, Header{"X": {"y"}}, nil, storedAt)
	require.Equal(t, FirstRun, runs)
	require.Equal(t, ReasonMalformed, f.Reason)
	require.Equal(t, "4", e.ID)
}

func sortPairs(s []string) {
	pairs := make([]string, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		pairs = append(pairs, s[i]+"\x00"+s[i+1])
	}
	sort.Strings(pairs)
	for i, p := range pairs {
		s[2*i], s[2*i+1], _ = strings.Cut(p, "\x00")
	}
}

func TestReplyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &Reply{
			EventID: rapid.StringMatching(`[!-~]{1,20}`).Draw(t, "id"), Attempt: rapid.IntRange(0, 100).Draw(t, "attempt"),
			Version: rapid.StringMatching(`([0-9]-[0-9a-f]{12})?`).Draw(t, "version"),
			// Microseconds are all that the header says.
			Duration: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "µs")) * time.Microsecond,
			Body:     rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		}
		if rapid.Bool().Draw(t, "fetch") {
			r.Status = rapid.IntRange(200, 599).Draw(t, "status")
			names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z-]{0,10}`), 0, 5, rapid.ID[string]).Draw(t, "names")
			for _, n := range names {
				for range rapid.IntRange(1, 2).Draw(t, "values") {
					r.Headers = append(r.Headers, n, rapid.StringMatching(`[!-~]{0,10}`).Draw(t, "value"))
				}
			}
		}
		if rapid.Bool().Draw(t, "fails") {
			r.Failure = NewFailure(rapid.SampledFrom(Reasons[:]).Draw(t, "reason"), rapid.StringMatching(`[ -~]{0,40}`).
				Draw(t, "message"), "")
		}
		got, err := DecodeReply(r.Encode(), r.Body)
		require.NoError(t, err)
		sortPairs(r.Headers)
		sortPairs(got.Headers)
		require.InDelta(t, r.Duration, got.Duration, float64(time.Microsecond))
		got.Duration = r.Duration
		require.Equal(t, r, got)
	})
}

func TestReplyIsOneLinePerHeader(t *testing.T) {
	t.Parallel()
	r := &Reply{Status: 200, Headers: []string{"x", "a\r\nReply-To: b\x00"}, Failure: Fail(ReasonException, "a\nb")}
	h := r.Encode()
	require.Equal(t, "a Reply-To: b ", h.Get("Http-Header-x"))
	require.Equal(t, "exception: a b", h.Get("Error"))
}

func TestDecodeReplyOfSomethingElse(t *testing.T) {
	t.Parallel()
	for _, h := range []Header{
		nil,
		{"Attempt": {"x"}},
		{"Attempt": {"-1"}},
		{"Attempt": {"1"}, "Duration-Ms": {"soon"}},
		{"Attempt": {"1"}, "Duration-Ms": {"NaN"}},
		{"Attempt": {"1"}, "Http-Status": {"99"}},
	} {
		_, err := DecodeReply(h, nil)
		require.Error(t, err, fmt.Sprint(h))
	}
}

func TestFailureReply(t *testing.T) {
	t.Parallel()
	f := Fail(ReasonException, `say "no"`)
	for _, k := range []Kind{Task, Scheduled} {
		r := FailureReply(&Event{Kind: k, ID: "e"}, 2, f)
		require.Zero(t, r.Status)
		require.Equal(t, []any{"e", 2, f}, []any{r.EventID, r.Attempt, r.Failure})
		var body map[string]any
		require.NoError(t, json.Unmarshal(r.Body, &body))
		require.Equal(t, map[string]any{"success": false, "error": `exception: say "no"`}, body)
	}
	r := FailureReply(&Event{Kind: Fetch}, 1, Fail(ReasonNoWorker, "nobody"))
	require.Equal(t, 404, r.Status)
	require.Equal(t, "no-worker: nobody\n", string(r.Body))
}
