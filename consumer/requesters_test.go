package consumer

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// A requester that hangs up is found at the same cost among any number of events, once, and only by its own name.
func TestWhoHangsUpIsFoundByName(t *testing.T) {
	table := inflight{left: func(int) {}}
	var from source
	hold := func(owner, worker, replyTo string) *entry {
		h := &entry{from: &from, event: lifecycle.Delivery{Event: events.Event{Owner: owner, Worker: worker,
			ReplyTo: replyTo}, Requester: &events.Requester{Credit: 1}}}
		table.add([]*entry{h})
		return h
	}
	var many []*entry
	for i := range 1000 {
		many = append(many, hold("acme", "w", "_INBOX.acme.same"), hold("acme", "w", fmt.Sprint("_INBOX.acme.", i)))
	}
	beta := hold("beta", "w", "_INBOX.acme.same")
	require.Empty(t, table.takeRequester("beta", "v", []byte("_INBOX.acme.same")))
	nobody := []byte("_INBOX.acme.nobody")
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { table.takeRequester("acme", "w", nobody) }), 1.0,
		"a message lists no events")
	require.Equal(t, []*entry{beta}, table.takeRequester("beta", "w", []byte("_INBOX.acme.same")))
	require.Empty(t, table.takeRequester("beta", "w", []byte("_INBOX.acme.same")), "once")
	table.remove(many[0], many[4])
	require.Len(t, table.takeRequester("acme", "w", []byte("_INBOX.acme.same")), 998)
	table.remove(append(many, beta)...)
	require.Empty(t, table.requesters, "nothing is left of events that have gone")
	require.Zero(t, table.len())
}
