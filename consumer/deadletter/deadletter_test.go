package deadletter_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

const patience = time.Minute // for facts that must come true

// at has no monotonic clock and no zone, so that it is the same after it was stored.
var at = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

// bed has a store of dead letters, the parts that the consumer uses, and what they work with.
type bed struct {
	*jsapitest.Bed
	*deadletter.Store
	*deadletter.Writer
	*deadletter.Notifier
	*deadletter.Claims
	t *testing.T
}

func open(t *testing.T) *bed {
	b := jsapitest.Open(t)
	decoder := events.Decoder{Subjects: jsapitest.Prefix, ReplyPrefixes: []string{"_INBOX.", "alerts."}}
	return &bed{
		b, deadletter.NewStore(b.JS, jsapitest.Prefix), deadletter.NewWriter(b.API, b.Usage, jsapitest.Prefix),
		deadletter.NewNotifier(b.API, decoder), deadletter.NewClaims(b.API, b.Usage, zerolog.Nop()), t,
	}
}

// write writes the letter of e, and returns the stored letter.
func (b *bed) write(e *events.Event, reason events.Reason) (*events.DeadLetter, error) {
	d := events.NewDeadLetter(e, events.NewFailure(reason, "boom", "Error: boom\n    at a.js:1:1"), "1-a", "node", 3, at)
	return jsapitest.Result(b.Bed, func(done func(*events.DeadLetter, error)) {
		b.Write(e, d, func() bool { return true },
			done)
	})
}

func (b *bed) find(e *events.Event) *events.DeadLetter {
	b.t.Helper()
	d, err := jsapitest.Result(b.Bed, func(done func(*events.DeadLetter, error)) { b.Find(e, done) })
	require.NoError(b.t, err)
	return d
}

// letters returns all letters of a store without their numbers, which are new after an import.
func letters(t *testing.T, s *deadletter.Store) []events.DeadLetter {
	t.Helper()
	var all []events.DeadLetter
	for d, err := range s.List(t.Context(), deadletter.Filter{}) {
		require.NoError(t, err)
		copied := *d
		copied.Seq, copied.Imported = 0, time.Time{}
		all = append(all, copied)
	}
	return all
}

// A letter keeps its event's headers, whatever they mean elsewhere: written, edited, and brought to another fleet.
func TestLetterKeepsForeignHeaders(t *testing.T) {
	t.Parallel()
	b := open(t)
	e := jsapitest.Task(7, "e", at)
	e.Body = []byte("\x00\xff")
	e.Header = events.Header{
		"X": {"a", "b"}, "x-lower": {"\xff"}, "Status": {"503"}, "Nats-Rollup": {"all"}, "nats-expected-stream": {"OTHER"},
		"Nats-TTL":    {"1s"},
		"Dead-Reason": {"mine"}, "Dead-Original-X": {"y"}, "Reply-To": {"_INBOX.x"},
	}
	written, err := b.write(e, events.ReasonException)
	require.NoError(t, err)
	got, err := b.Get(t.Context(), written.Seq)
	require.NoError(t, err)
	require.Equal(t, e.Header, got.Header)
	require.Equal(t, e.Body, got.Body)
	require.Equal(t, []any{"e", events.ReasonException, 3, at, uint64(7)},
		[]any{got.EventID, got.Failure.Reason, got.Attempts, got.At, got.StreamSeq})

	edited, err := b.Edit(t.Context(), got.Seq, events.Edit{Body: []byte("new"), Set: events.Header{"X": {"c"}}})
	require.NoError(t, err)
	want := events.Header{}
	for name, values := range e.Header {
		want[name] = values
	}
	want["X"] = []string{"c"}
	require.Equal(t, want, edited.Header)
	require.Equal(t, 1, b.Stored(events.StreamDead), "the edit replaced it")
	require.Equal(t, edited.Seq, b.find(e).Seq, "it is still the letter of its event")

	var file bytes.Buffer
	counts, err := b.Export(t.Context(), deadletter.Selection{IDs: []uint64{edited.Seq, edited.Seq + 1}}, &file, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 2, Done: 1, Failed: 1}, counts)
	other := open(t)
	imported, err := other.Import(t.Context(), &file, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.ImportCounts{Line: 1, Stored: 1}, imported)
	require.Equal(t, letters(t, b.Store), letters(t, other.Store))
}

// An event has one letter, also when a process died before the ack and the event fails for another reason.
func TestLetterIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	e := jsapitest.Task(7, "e", at)
	require.Nil(t, b.find(e))
	first, err := b.write(e, events.ReasonException)
	require.NoError(t, err)
	second, err := b.write(e, events.ReasonCPU)
	require.NoError(t, err)
	require.Equal(t, []any{first.Seq, events.ReasonException}, []any{second.Seq, second.Failure.Reason})
	require.Equal(t, first.Seq, b.find(e).Seq)

	// The event stream was deleted and created again.
	now := jsapitest.Task(7, "e", at.Add(time.Nanosecond))
	require.Nil(t, b.find(now), "the letter of an older event is none of this one")
	third, err := b.write(now, events.ReasonException)
	require.NoError(t, err)
	require.Greater(t, third.Seq, first.Seq)
	require.Equal(t, 2, b.Stored(events.StreamDead))
}

// A letter loses what is only informative before it loses anything of its event.
func TestLetterIsCutUntilItFits(t *testing.T) {
	t.Parallel()
	b := open(t)
	most := int(b.NC.MaxPayload())
	for name, c := range map[string]struct {
		body    int
		headers events.Header
		err     error
	}{
		"room for all":      {1, events.Header{"X": {"y"}}, nil},
		"large body":        {most - 2<<10, events.Header{"X": {"y"}}, nil},
		"large headers":     {1, events.Header{"X": {strings.Repeat("y", 1<<16)}}, nil},
		"body that is full": {most, nil, deadletter.ErrNoFit},
	} {
		e := jsapitest.Task(uint64(c.body+len(c.headers.Get("X"))), name, at)
		e.Header, e.Body = c.headers, make([]byte, c.body)
		d, err := b.write(e, events.ReasonException)
		require.ErrorIs(t, err, c.err, name)
		if err != nil {
			continue
		}
		got, err := b.Get(t.Context(), d.Seq)
		require.NoError(t, err, name)
		require.Len(t, got.Body, c.body, name)
		require.Equal(t, "boom", got.Failure.Message, name)
		require.Equal(t, c.headers, got.Header, name)
	}
}

// Only one publish of a replay runs, and it runs once.
func TestClaims(t *testing.T) {
	t.Parallel()
	b := open(t)
	take := func(r deadletter.Replay) deadletter.Claim {
		t.Helper()
		c, err := jsapitest.Result(b.Bed, func(done func(deadletter.Claim, error)) { b.Take(r, done) })
		require.NoError(t, err)
		return c
	}
	mine := deadletter.Replay{Owner: "acme", ID: "r", Nonce: "1"}
	other, foreign := mine, mine
	other.Nonce, foreign.Owner, foreign.Nonce = "2", "globex", "3"
	require.Equal(t, deadletter.Claimed, take(mine))
	require.Equal(t, deadletter.ClaimedAgain, take(mine), "delivered again")
	require.Equal(t, deadletter.ClaimedOther, take(other))
	require.Equal(t, deadletter.Claimed, take(foreign), "claims of owners are apart")
	require.NoError(t, b.Done(func(done func(error)) { b.End(mine, deadletter.ReplaySucceeded, nil, 0, at, done) }))
	require.Equal(t, deadletter.ClaimEnded, take(mine), "its ack was lost")
	require.Equal(t, deadletter.ClaimedOther, take(other))
}

func TestReplayOf(t *testing.T) {
	t.Parallel()
	e := jsapitest.Task(7, "e", at)
	_, ok := deadletter.ReplayOf(e)
	require.False(t, ok)
	require.False(t, deadletter.IsReplay(e))
	d := events.NewDeadLetter(e, events.Fail(events.ReasonCPU, "boom"), "1-a", "node", 1, at)
	e.Header = events.Header{events.HeaderReplay: {d.ReplayMark("nonce")}}
	r, ok := deadletter.ReplayOf(e)
	require.True(t, ok)
	require.Equal(t, deadletter.Replay{Owner: "acme", ID: d.ReplayID(), Nonce: "nonce"}, r)
	e.Header = events.Header{events.HeaderReplay: {"made up"}}
	_, ok = deadletter.ReplayOf(e)
	require.False(t, ok)
	require.True(t, deadletter.IsReplay(e), "it must not run without a claim")
}

// A message that is no letter is shown, does not hide the others, and can be removed by its number.
func TestMessagesThatAreNoLetters(t *testing.T) {
	t.Parallel()
	b := open(t)
	ack, err := b.JS.Publish(t.Context(), jsapitest.Prefix.Dead(jsapitest.Task(1, "none", at), events.ReasonCPU),
		[]byte("x"))
	require.NoError(t, err)
	_, err = b.write(jsapitest.Task(7, "e", at), events.ReasonException)
	require.NoError(t, err)
	var listed []string
	for d, err := range b.List(t.Context(), deadletter.Filter{}) {
		listed = append(listed, fmt.Sprint(d.EventID, " ", err != nil))
	}
	require.Equal(t, []string{" true", "e false"}, listed)
	_, err = b.Get(t.Context(), ack.Sequence)
	require.ErrorIs(t, err, deadletter.ErrUndecodable)

	all, err := b.Purge(t.Context(), deadletter.Selection{}, true, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 2, Done: 1, Failed: 1}, all)
	of, err := b.Purge(t.Context(), deadletter.Selection{IDs: []uint64{ack.Sequence}, Owner: "acme"}, false, nil)
	require.NoError(t, err)
	require.Equal(t, 1, of.Failed, "whose it is, is not known")
	one, err := b.Purge(t.Context(), deadletter.Selection{IDs: []uint64{ack.Sequence}}, false, nil)
	require.NoError(t, err)
	require.Equal(t, 1, one.Done)
	require.Equal(t, 1, b.Stored(events.StreamDead))
}

// A notice goes where the fleet may publish for the letter's owner, and only once.
func TestNotices(t *testing.T) {
	t.Parallel()
	b := open(t)
	published := make(chan *nats.Msg, 8)
	for _, subject := range []string{"private.>", "alerts.>", string(jsapitest.Prefix) + ".events.task.globex.>"} {
		_, err := b.NC.ChanSubscribe(subject, published)
		require.NoError(t, err)
	}
	e := jsapitest.Task(7, "e", at)
	notify := func(hook events.DeadHook) {
		t.Helper()
		d := events.NewDeadLetter(e, events.Fail(events.ReasonCPU, "boom"), "1-a", "node", 1, at)
		d.Hook = hook
		require.NoError(t, b.Done(func(done func(error)) { b.Notify(d, func() { done(nil) }) }))
	}
	for _, subject := range []string{"private.x", string(jsapitest.Prefix) + ".events.task.globex.w", "$SYS.x",
		"alerts.>"} {
		notify(events.DeadHook{Subject: subject})
	}
	notify(events.DeadHook{Subject: "alerts.acme"})
	var m *nats.Msg
	select {
	case m = <-published:
	case <-time.After(patience):
		t.Fatal("not published")
	}
	require.Equal(t, "alerts.acme", m.Subject, "nothing was published before")
	letter, err := events.ParseLetter(m.Data)
	require.NoError(t, err)
	require.Equal(t, "e", letter.EventID)
	require.Equal(t, letter.Identity(), m.Header.Get(events.HeaderDeadOf))

	notify(events.DeadHook{Worker: "alarm"})
	notify(events.DeadHook{Worker: "alarm"})
	s, err := b.JS.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	last, err := s.GetLastMsgForSubject(t.Context(), jsapitest.Prefix.StoredFor("acme", "alarm")[0])
	require.NoError(t, err)
	told, err := events.ParseLetter(last.Data)
	require.NoError(t, err)
	require.Equal(t, letter.Identity(), told.Identity())
	require.True(t, bytes.HasPrefix([]byte(last.Header.Get(nats.MsgIdHdr)), []byte("acme:dead:")))
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, last.Sequence, info.State.LastSeq, "published twice, stored once")

	// An event of another owner that has the message id is in nobody's way.
	e.Origin.Seq++
	d := events.NewDeadLetter(e, events.Fail(events.ReasonCPU, "boom"), "1-a", "node", 1, at)
	_, err = b.JS.Publish(t.Context(), jsapitest.Prefix.Event(events.Task, "globex", "w"), nil,
		jetstream.WithMsgID("acme:dead:"+d.Identity()))
	require.NoError(t, err)
	notify(events.DeadHook{Worker: "alarm"})
	last, err = s.GetLastMsgForSubject(t.Context(), jsapitest.Prefix.StoredFor("acme", "alarm")[0])
	require.NoError(t, err)
	require.Equal(t, d.Identity(), last.Header.Get(events.HeaderDeadOf))
	require.Regexp(t, "^acme:dead:"+d.Identity()+":[A-Z2-7]{26}$", last.Header.Get(nats.MsgIdHdr))
}
