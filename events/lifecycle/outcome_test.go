package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfVerdictsAndOrders(t *testing.T) {
	var names []string
	for v := None; v <= Retry; v++ {
		names = append(names, (&Settlement{Outcome: Outcome{Verdict: v}}).String())
	}
	for o := Return; o <= Share; o++ {
		names = append(names, (&Settlement{Order: o}).String())
	}
	require.Equal(t, []string{"none", "ack", "dead", "retry", "return", "park", "watch", "watch", "share"}, names)
}

// A settlement that only brings a reply leaves the event where it is. Taking one for that would lose the event.
func TestReplyOnly(t *testing.T) {
	require.True(t, (&Settlement{}).ReplyOnly())
	for v := Ack; v <= Retry; v++ {
		require.False(t, (&Settlement{Outcome: Outcome{Verdict: v}}).ReplyOnly(), v)
	}
	for o := Return; o <= Share; o++ {
		require.False(t, (&Settlement{Order: o}).ReplyOnly(), o)
	}
}
