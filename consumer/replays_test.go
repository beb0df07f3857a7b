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

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

func replays(t testing.TB, dl *deadletter.Store, f deadletter.ReplayFilter) []*deadletter.Replayed {
	t.Helper()
	var all []*deadletter.Replayed
	for r, err := range dl.Replays(t.Context(), f) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// For each replay it is known whether it waits, runs, or how it ended.
func TestHowReplaysEnd(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	letters := map[string]*events.DeadLetter{}
	for i, body := range []string{"ok", "once", "error", "again", "never", "late"} {
		owner := "acme"
		if body == "once" {
			owner = "once"
		}
		letters[body] = lay(t, js, &events.DeadLetter{Owner: owner, StreamSeq: uint64(i + 1), EventID: body,
			Body: []byte(body), Replays: i})
	}
	stay := lay(t, js, &events.DeadLetter{StreamSeq: 50, EventID: "stay"})
	state := func(body string) *deadletter.Replayed {
		all := replays(t, dl, deadletter.ReplayFilter{Letters: []uint64{letters[body].Seq}})
		require.Len(t, all, 1, body)
		return all[0]
	}
	for body, l := range letters {
		require.NoError(t, dl.Replay(t.Context(), l, deadletter.ReplayOptions{}))
		r := state(body)
		require.Equal(t, deadletter.ReplayWaiting, r.State)
		require.Equal(t, []any{l.Seq, l.Owner, "w", "", "task", body, l.Replays + 1},
			[]any{r.Letter, r.Owner, r.Worker, r.Version, r.Kind, r.EventID, r.Replay})
		require.Zero(t, r.Ended)
	}
	require.Empty(t, replays(t, dl, deadletter.ReplayFilter{Letters: []uint64{stay.Seq}}))

	cfg := testConfig()
	cfg.LongRetry = time.Second
	cfg.Catalog = idempotent("once")
	start(t, nc, cfg, &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Version: "1-a",
			Failure: events.Fail(events.ReasonException, "no prices")}}
		switch string(e.Body) {
		case "error":
			s.Outcome.Verdict = lifecycle.Ack
		case "again":
			s.Outcome.Verdict = lifecycle.Dead
		case "late":
			s.Outcome.Verdict, s.Outcome.Delay = lifecycle.Retry, time.Hour
		case "never":
			return never(e)
		default:
			return ack(e)
		}
		return s, true
	}})
	for body, want := range map[string]deadletter.ReplayState{
		"ok": deadletter.ReplaySucceeded, "once": deadletter.ReplaySucceeded, "error": deadletter.ReplayFailed,
		"again": deadletter.ReplayDead,
		"never": deadletter.ReplayRunning, "late": deadletter.ReplayPutOff,
	} {
		require.Eventually(t, func() bool { return state(body).State == want }, patience, 5*time.Millisecond, "%s: %s", body,
			want)
	}
	failed, dead := state("error"), state("again")
	require.Equal(t, []any{events.ReasonException, "no prices", uint64(0)},
		[]any{failed.Reason, failed.Message, failed.Dead})
	require.False(t, failed.Ended.IsZero())
	letter, err := dl.Get(t.Context(), dead.Dead)
	require.NoError(t, err)
	require.Equal(t, "again", letter.EventID)
	require.Equal(t, dead.Replay, letter.Replays)

	require.Len(t, replays(t, dl, deadletter.ReplayFilter{}), 6)
	require.Len(t, replays(t, dl, deadletter.ReplayFilter{Owner: "acme", Worker: "w"}), 5)
	require.Empty(t, replays(t, dl, deadletter.ReplayFilter{Worker: "other"}))
	require.Len(t, replays(t, dl, deadletter.ReplayFilter{State: deadletter.ReplaySucceeded}), 2)
	all := replays(t, dl, deadletter.ReplayFilter{})
	require.Equal(t, all[4:], replays(t, dl, deadletter.ReplayFilter{Limit: 2}))
	require.True(t, slices.IsSortedFunc(all, func(a, b *deadletter.Replayed) int { return a.At.Compare(b.At) }))

	// Its event is unknown: an operator removed it.
	require.NoError(t,
		dl.Replay(t.Context(), stay, deadletter.ReplayOptions{To: events.Target{Worker: "other", Version: "3"}}))
	r := replays(t, dl, deadletter.ReplayFilter{Letters: []uint64{stay.Seq}})[0]
	require.Equal(t, []any{"other", "3"}, []any{r.Worker, r.Version})
}

// A replay whose event was removed before a process took it is unknown.
func TestReplayOfWhichNothingIsLeft(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e"})
	require.NoError(t, dl.Replay(t.Context(), letter, deadletter.ReplayOptions{}))
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(subjects.StoredOwner("acme"))))
	require.Equal(t, deadletter.ReplayUnknown, replays(t, dl, deadletter.ReplayFilter{})[0].State)
}

// A letter whose worker or version is not there is not replayed, and nothing is published.
func TestReplayForNobodyIsRefused(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e",
		Header: events.Header{events.HeaderWorkerVersion: {"7"}}})
	var asked []string
	o := deadletter.ReplayOptions{Runs: func(_ context.Context, owner, worker, version string) error {
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
	require.Zero(t, stored(t, js, events.StreamEvents))
	require.Len(t, letters(t, dl, deadletter.Filter{}), 1)
	require.Empty(t, replays(t, dl, deadletter.ReplayFilter{}))
}

// A client without the permission to note replays can replay, and waits only once.
func TestReplaysThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	require.NoError(t, js.DeleteKeyValue(t.Context(), events.BucketAttempts))
	for i := range 3 {
		lay(t, js, &events.DeadLetter{StreamSeq: uint64(i + 1), EventID: fmt.Sprint(i)})
	}
	var told []error
	counts, err := dl.ReplayAll(t.Context(), deadletter.Selection{},
		deadletter.ReplayOptions{Unnoted: func(err error) { told = append(told, err) }}, nil)
	require.NoError(t, err)
	require.Equal(t, 3, counts.Done)
	require.Len(t, told, 1)
	require.ErrorContains(t, told[0], "how replays end will not be known")
	require.Equal(t, 3, stored(t, js, events.StreamEvents))
}

// As many replays of an owner are remembered as claims.
func TestReplaysOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	const most = 10_000
	var last jetstream.PubAckFuture
	for i := range most + 5 {
		var err error
		last, err = js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprintf("$KV.%s.replayed.acme.x.%d", events.BucketAttempts, i),
			Data: []byte("{}")}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		t.Fatal("not stored")
	}
	<-last.Ok()
	lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e"})
	_, err := dl.ReplayAll(t.Context(), deadletter.Selection{}, deadletter.ReplayOptions{}, nil)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "KV_"+events.BucketAttempts)
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$KV."+events.BucketAttempts+".replayed.acme.>"))
	require.NoError(t, err)
	require.Len(t, info.State.Subjects, most)
	require.Len(t, replays(t, dl, deadletter.ReplayFilter{}), 1, "the new one is among them, and what is no record is not shown")
}
