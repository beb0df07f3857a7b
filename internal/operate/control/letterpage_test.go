package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

// A page of the newest letters of which few match ends after a bound of letters, and the next one goes on.
func TestPagesOfTheNewestAreBounded(t *testing.T) {
	t.Parallel()
	b := jsapitest.Open(t)
	dead := deadletter.NewStore(b.JS, jsapitest.Prefix)
	const n = 1000
	for i := range n {
		e := jsapitest.Task(uint64(i+1), "e", time.Now())
		d := events.NewDeadLetter(e, events.NewFailure(events.ReasonCPU, fmt.Sprintf("letter %d.", i+1), ""), "1-a", "node",
			1, time.Now())
		_, err := b.JS.PublishMsg(t.Context(), &nats.Msg{Subject: jsapitest.Prefix.DeadLetter(d, events.ReasonCPU),
			Header: nats.Header(d.Encode()), Data: []byte("x")})
		require.NoError(t, err)
	}
	page := func(ctx context.Context, f deadletter.Filter, before uint64, most int) (LetterList, error) {
		p := letterPage{room: 1 << 20}
		err := p.newest(ctx, dead, f, before, most)
		return p.LetterList, err
	}
	f := deadletter.Filter{Text: "letter 5.", Limit: 10}
	pages, before := 0, uint64(0)
	for {
		p, err := page(t.Context(), f, before, 300)
		require.NoError(t, err)
		require.Less(t, p.Scanned, 300+512)
		pages++
		if !p.More {
			require.Len(t, p.Letters, 1)
			require.EqualValues(t, 5, p.Letters[0].ID)
			require.Zero(t, p.Next)
			break
		}
		require.Empty(t, p.Letters)
		require.Positive(t, p.Next)
		before = p.Next
	}
	require.Greater(t, pages, 1)

	p, err := page(t.Context(), deadletter.Filter{Limit: 3}, 0, 300)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(n), uint64(n - 2), uint64(n - 2), 3, false},
		[]any{p.Letters[0].ID, p.Letters[2].ID, p.Next, p.Scanned, p.More})

	// A request whose time is over before anything was read is an error. Later, what was found is the page.
	over, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	_, err = page(over, f, 0, 300)
	require.ErrorContains(t, err, "looking took longer")
	part := letterPage{LetterList: LetterList{Next: 7}}
	require.NoError(t, part.cut(over, over.Err()))
	require.True(t, part.More)
	require.ErrorIs(t, part.cut(t.Context(), nats.ErrTimeout), nats.ErrTimeout)
}
