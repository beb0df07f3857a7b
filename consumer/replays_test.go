package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

func replays(t testing.TB, dl *consumer.DeadLetters, f consumer.ReplayFilter) []*consumer.Replayed {
	t.Helper()
	var all []*consumer.Replayed
	for r, err := range dl.Replays(t.Context(), f) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// Of each replay it is known whether it waits, runs, or how it ended.
func TestHowReplaysEnd(t *testing.T) {
	nc, js, dl := house(t)
	letters := map[string]*events.DeadLetter{}
	for i, body := range []string{"ok", "once", "error", "again", "never", "late"} {
		owner := "acme"
		if body == "once" {
			owner = "once"
		}
		letters[body] = lay(t, js, &events.DeadLetter{Owner: owner, StreamSeq: uint64(i + 1), EventID: body, Body: []byte(body), Replays: i})
	}
	stay := lay(t, js, &events.DeadLetter{StreamSeq: 50, EventID: "stay"})
	state := func(body string) *consumer.Replayed {
		all := replays(t, dl, consumer.ReplayFilter{Letters: []uint64{letters[body].Seq}})
		require.Len(t, all, 1, body)
		return all[0]
	}
	for body, l := range letters {
		require.NoError(t, dl.Replay(t.Context(), l, consumer.ReplayOptions{}))
		r := state(body)
		require.Equal(t, consumer.ReplayWaiting, r.State)
		require.Equal(t, []any{l.Seq, l.Owner, "w", "", "task", body, l.Replays + 1}, []any{r.Letter, r.Owner, r.Worker, r.Version, r.Kind, r.EventID, r.Replay})
		require.Zero(t, r.Ended)
	}
	require.Empty(t, replays(t, dl, consumer.ReplayFilter{Letters: []uint64{stay.Seq}}))

	cfg := testConfig()
	cfg.LongRetry = time.Second
	cfg.Idempotent = func(owner, _ string) bool { return owner == "once" }
	start(t, nc, cfg, &dispatcher{handle: func(e *events.Event) (events.Settlement, bool) {
		s := events.Settlement{Event: e, Outcome: events.Outcome{Version: "1-a", Failure: events.Fail(events.ReasonException, "no prices")}}
		switch string(e.Body) {
		case "error":
			s.Outcome.Verdict = events.Ack
		case "again":
			s.Outcome.Verdict = events.Dead
		case "late":
			s.Outcome.Verdict, s.Outcome.Delay = events.Retry, time.Hour
		case "never":
			return never(e)
		default:
			return ack(e)
		}
		return s, true
	}})
	for body, want := range map[string]consumer.ReplayState{
		"ok": consumer.ReplaySucceeded, "once": consumer.ReplaySucceeded, "error": consumer.ReplayFailed, "again": consumer.ReplayDead,
		"never": consumer.ReplayRunning, "late": consumer.ReplayPutOff,
	} {
		require.Eventually(t, func() bool { return state(body).State == want }, patience, 5*time.Millisecond, "%s: %s", body, want)
	}
	failed, dead := state("error"), state("again")
	require.Equal(t, []any{events.ReasonException, "no prices", uint64(0)}, []any{failed.Reason, failed.Message, failed.Dead})
	require.False(t, failed.Ended.IsZero())
	letter, err := dl.Get(t.Context(), dead.Dead)
	require.NoError(t, err)
	require.Equal(t, "again", letter.EventID)
	require.Equal(t, dead.Replay, letter.Replays)

	require.Len(t, replays(t, dl, consumer.ReplayFilter{}), 6)
	require.Len(t, replays(t, dl, consumer.ReplayFilter{Owner: "acme", Worker: "w"}), 5)
	require.Empty(t, replays(t, dl, consumer.ReplayFilter{Worker: "other"}))
	require.Len(t, replays(t, dl, consumer.ReplayFilter{State: consumer.ReplaySucceeded}), 2)
	all := replays(t, dl, consumer.ReplayFilter{})
	require.Equal(t, all[4:], replays(t, dl, consumer.ReplayFilter{Limit: 2}))
	require.True(t, slices.IsSortedFunc(all, func(a, b *consumer.Replayed) int { return a.At.Compare(b.At) }))

	// Whose event nobody knows: an operator removed it.
	require.NoError(t, dl.Replay(t.Context(), stay, consumer.ReplayOptions{To: events.Target{Worker: "other", Version: "3"}}))
	r := replays(t, dl, consumer.ReplayFilter{Letters: []uint64{stay.Seq}})[0]
	require.Equal(t, []any{"other", "3"}, []any{r.Worker, r.Version})
}

// A replay whose event was removed before anybody took it is unknown.
func TestReplayOfWhichNothingIsLeft(t *testing.T) {
	_, js, dl := house(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e"})
	require.NoError(t, dl.Replay(t.Context(), letter, consumer.ReplayOptions{}))
	s, err := js.Stream(t.Context(), consumer.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(subjects.StoredOwner("acme"))))
	require.Equal(t, consumer.ReplayUnknown, replays(t, dl, consumer.ReplayFilter{})[0].State)
}

// A letter whose worker or version is not there is not replayed, and nothing is published.
func TestReplayForNobodyIsRefused(t *testing.T) {
	_, js, dl := house(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e", Header: events.Header{events.HeaderWorkerVersion: {"7"}}})
	var asked []string
	o := consumer.ReplayOptions{Runs: func(_ context.Context, owner, worker, version string) error {
		asked = append(asked, owner+"/"+worker+"@"+version)
		return fmt.Errorf("nobody runs it")
	}}
	err := dl.Replay(t.Context(), letter, o)
	require.EqualError(t, err, fmt.Sprintf("dead letter %d is not replayed: nobody runs it", letter.Seq))
	o.To, o.DryRun = events.Target{Worker: "other"}, true
	require.Error(t, dl.Replay(t.Context(), letter, o))
	o.To = events.Target{Version: "9"}
	require.Error(t, dl.Replay(t.Context(), letter, o))
	require.Equal(t, []string{"acme/w@7", "acme/other@", "acme/w@9"}, asked)
	require.Zero(t, stored(t, js, consumer.StreamEvents))
	require.Len(t, letters(t, dl, consumer.Filter{}), 1)
	require.Empty(t, replays(t, dl, consumer.ReplayFilter{}))
}

// Whoever may not note a replay replays all the same, and waits once.
func TestReplaysThatCannotBeNoted(t *testing.T) {
	_, js, dl := house(t)
	require.NoError(t, js.DeleteKeyValue(t.Context(), consumer.BucketAttempts))
	for i := range 3 {
		lay(t, js, &events.DeadLetter{StreamSeq: uint64(i + 1), EventID: fmt.Sprint(i)})
	}
	var told []error
	tally, err := dl.ReplayAll(t.Context(), consumer.Selection{}, consumer.ReplayOptions{Untold: func(err error) { told = append(told, err) }}, nil)
	require.NoError(t, err)
	require.Equal(t, 3, tally.Done)
	require.Len(t, told, 1)
	require.ErrorContains(t, told[0], "how replays end will not be known")
	require.Equal(t, 3, stored(t, js, consumer.StreamEvents))
}

// Of an owner as many replays are remembered as are claimed.
func TestReplaysOfAnOwnerAreBounded(t *testing.T) {
	_, js, dl := house(t)
	const most = 10_000
	var last jetstream.PubAckFuture
	for i := range most + 5 {
		var err error
		last, err = js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprintf("$KV.%s.replayed.acme.x.%d", consumer.BucketAttempts, i), Data: []byte("{}")})
		require.NoError(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("not stored")
	}
	<-last.Ok()
	lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e"})
	_, err := dl.ReplayAll(t.Context(), consumer.Selection{}, consumer.ReplayOptions{}, nil)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "KV_"+consumer.BucketAttempts)
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$KV."+consumer.BucketAttempts+".replayed.acme.>"))
	require.NoError(t, err)
	require.Len(t, info.State.Subjects, most)
	require.Len(t, replays(t, dl, consumer.ReplayFilter{}), 1, "the new one is among them, and what is no record is not shown")
}
