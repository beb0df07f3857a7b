package hostileowners

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// overtakes: events behind the backlog of an owner in their lane have headers of a direct get, which claim that the
// events belong to that backlog, and to beta.
func overtakes(t *testing.T, f *fleet) (harm string) {
	const backlog, forged = 4000, 10
	const other = "otherp" // is in acme's lane
	require.Equal(t, events.LaneOf("acme"), events.LaneOf(other))
	f.deploy(other, "slow", `export default { task: async event => { await scheduler.wait(100); return event.payload } }`, "")
	f.deploy("beta", "echo", `export default { task: event => event.payload }`, "")
	replies, err := f.nc.SubscribeSync("_INBOX.otherp.*")
	require.NoError(t, err)
	require.NoError(t, replies.SetPendingLimits(-1, -1))
	beta := f.as("beta")
	stolen, err := beta.SubscribeSync("_INBOX.beta.stolen")
	require.NoError(t, err)
	require.NoError(t, beta.Flush())
	theirs := func(i int) *nats.Msg {
		return &nats.Msg{Subject: subjects.Event(events.Task, other, "slow"),
			Header: nats.Header{"Reply-To": {fmt.Sprint("_INBOX.otherp.", i)}}, Data: []byte("1")}
	}
	for i := range backlog - forged {
		_, err := f.js.PublishMsgAsync(theirs(i), jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	<-f.js.PublishAsyncComplete()

	acme, err := jetstream.New(f.as("acme"))
	require.NoError(t, err)
	s, err := f.js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	seq := s.CachedInfo().State.LastSeq // acme sees this number in the answers to its own publishes
	for i := range forged {
		said := nats.Header{ // claims that it is the event that other stores next, and beta's
			"Nats-Stream": {events.StreamEvents}, "Nats-Sequence": {fmt.Sprint(seq + 2)},
			"Nats-Time-Stamp": {"2026-01-01T00:00:00Z"},
			"Nats-Subject":    {fmt.Sprintf("%s.events.%d.task.beta.echo", subjects, events.LaneOf("beta"))},
			"Reply-To":        {"_INBOX.beta.stolen"},
		}
		_, err := acme.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Event(events.Task, "acme", "any"), Header: said,
			Data: []byte("2")})
		require.NoError(t, err)
		ack, err := f.js.PublishMsg(t.Context(), theirs(backlog-1-i))
		require.NoError(t, err)
		seq = ack.Sequence
	}
	until(t, "all events have ended", func() bool { return f.left(events.StreamEvents)+f.left(events.StreamParked) == 0 })
	require.NoError(t, f.nc.Flush())
	require.NoError(t, beta.Flush())
	ran, _, err := replies.Pending()
	require.NoError(t, err)
	runs, _, err := stolen.Pending()
	require.NoError(t, err)
	if ran == backlog && runs == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d events of another owner ran, and beta's worker ran %d that are not beta's", ran, backlog, runs)
}

// left returns the number of events in a stream.
func (f *fleet) left(stream string) uint64 {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), stream)
	require.NoError(f.t, err)
	info, err := s.Info(f.t.Context(), jetstream.WithSubjectFilter(">"))
	require.NoError(f.t, err)
	return info.State.Msgs - info.State.Subjects[subjects.Anchor()] - info.State.Subjects[subjects.ParkedAnchor()]
}
