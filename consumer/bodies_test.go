package consumer_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// makers answers each event with a body in chunks, and records what the makers of the bodies are notified of.
type makers struct {
	d  *dispatcher
	mu sync.Mutex
	of map[string]*maker // by owner
}

type maker struct {
	stream  *events.Stream
	grants  []int64
	cancels []string
}

func newMakers() *makers {
	m := &makers{d: &dispatcher{}, of: map[string]*maker{}}
	m.d.handle = m.handle
	return m
}

func (m *makers) handle(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	b := &maker{stream: &events.Stream{}}
	b.stream.Grant = func(upTo int64) { m.mu.Lock(); b.grants = append(b.grants, upTo); m.mu.Unlock() }
	b.stream.Cancel = func(why string) { m.mu.Lock(); b.cancels = append(b.cancels, why); m.mu.Unlock() }
	m.mu.Lock()
	m.of[e.Owner] = b
	m.mu.Unlock()
	m.d.settle([]lifecycle.Settlement{{Event: e, Reply: &events.Reply{Status: 200, EventID: e.ID, Attempt: e.Attempt,
		Stream: b.stream}}})
	return lifecycle.Settlement{}, false
}

// told is what the maker of an owner's body has been notified of so far.
func (m *makers) told(owner string) (grants []int64, cancels []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(grants, m.of[owner].grants...), append(cancels, m.of[owner].cancels...)
}

// ask publishes an event of an owner who takes chunks, and returns where its credits go.
func (m *makers) ask(t *testing.T, nc *nats.Conn, owner string) (credit string, chunks *nats.Subscription) {
	t.Helper()
	to, sub := inbox(t, nc)
	publish(t, nc, events.Fetch, owner, nats.Header{"Reply-To": {to}, "Body-Credit": {"10"}}, "x")
	head, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "0", head.Header.Get("Body-Seq"))
	return head.Header.Get("Body-Credit"), sub
}

// A credit counts only on the subject of the body's own owner, even if another owner knows the rest of it.
func TestCreditsOfAnotherOwnerMeanNothing(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	m := newMakers()
	start(t, nc, testConfig(), m.d)
	beta, _ := m.ask(t, nc, "beta")
	acme := strings.Replace(beta, ".beta.", ".acme.", 1)
	require.NotEqual(t, beta, acme)
	for _, text := range []string{"1000000", "cancel"} {
		require.NoError(t, nc.Publish(acme, []byte(text)))
	}
	for _, text := range []string{"-1", "9", "20", "19", "9223372036854775808", "", "x"} {
		require.NoError(t, nc.Publish(beta, []byte(text)))
	}
	require.NoError(t, nc.Publish(beta, []byte("30")))
	require.Eventually(t, func() bool {
		grants, _ := m.told("beta")
		return len(grants) > 0 &&
			grants[len(grants)-1] == 30
	}, patience, time.Millisecond)
	grants, cancels := m.told("beta")
	require.IsIncreasing(t, append([]int64{10}, grants...))
	require.Empty(t, cancels)
	require.NoError(t, nc.Publish(beta, []byte("9223372036854775807")))
	require.NoError(t, nc.Publish(beta, []byte("cancel")))
	require.Eventually(t, func() bool { _, cancels := m.told("beta"); return len(cancels) == 1 }, patience,
		time.Millisecond)
	grants, _ = m.told("beta")
	require.LessOrEqual(t, grants[len(grants)-1], int64(1<<20), "and no more is made than may be on the way")
}

// The last token of a credit subject does not reveal the next one.
func TestCreditSubjectsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	m := newMakers()
	start(t, nc, testConfig(), m.d)
	first, _ := m.ask(t, nc, "acme")
	second, _ := m.ask(t, nc, "beta")
	a, b := first[strings.LastIndexByte(first, '.')+1:], second[strings.LastIndexByte(second, '.')+1:]
	require.NotEqual(t, a, b)
	require.Len(t, a, 26, "128 random bits")
	require.Len(t, b, 26)
}

// However many grants a requester sends, few of them cost the process more than reading them, and the last is not lost.
func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	m := newMakers()
	start(t, nc, testConfig(), m.d)
	credit, _ := m.ask(t, nc, "acme")
	const flood = 100_000
	began := time.Now()
	for i := range flood {
		require.NoError(t, nc.Publish(credit, strconv.AppendInt(nil, int64(11+i), 10)))
	}
	require.Eventually(t, func() bool { grants, _ := m.told("acme"); return grants[len(grants)-1] == 10+flood }, patience,
		time.Millisecond)
	grants, _ := m.told("acme")
	require.LessOrEqual(t, float64(len(grants)), 1000+1000*time.Since(began).Seconds()+1)
	for range 1000 {
		require.NoError(t, nc.Publish(credit, []byte("cancel")))
	}
	require.NoError(t, nc.Publish(credit, strconv.AppendInt(nil, 20+flood, 10)))
	require.NoError(t, nc.Flush())
	_, sub := m.ask(t, nc, "beta") // what came before has been read
	require.NoError(t, sub.Unsubscribe())
	_, cancels := m.told("acme")
	require.Len(t, cancels, 1)
}

// Short chunks that wait together become one message, and the order stays.
func TestShortChunksAreJoined(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	m := newMakers()
	start(t, nc, testConfig(), m.d)
	_, sub := m.ask(t, nc, "acme")
	m.mu.Lock()
	body := m.of["acme"].stream
	m.mu.Unlock()
	for i := range 100_000 {
		body.Push(events.Chunk{Data: []byte{byte(i)}})
	}
	body.Push(events.Chunk{End: true})
	for seq, n := 1, int64(0); ; seq++ {
		msg, err := sub.NextMsg(patience)
		require.NoError(t, err)
		c, err := events.DecodeChunk(events.Header(msg.Header), msg.Data, seq, n)
		require.NoError(t, err)
		for _, b := range c.Data {
			if b != byte(n) { // require takes long for each byte
				require.Equal(t, byte(n), b)
			}
			n++
		}
		if c.End {
			require.EqualValues(t, 100_000, n)
			return
		}
	}
}

// A process that ends before a body is complete notifies its reader.
func TestDrainTellsTheReadersOfBodies(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	m := newMakers()
	f := start(t, nc, testConfig(), m.d)
	_, sub := m.ask(t, nc, "acme")
	m.mu.Lock()
	body := m.of["acme"].stream
	m.mu.Unlock()
	body.Push(events.Chunk{Data: []byte("abc")})
	msg, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "abc", string(msg.Data))
	f.halt()
	body.Push(events.Chunk{Data: []byte("late")})
	msg, err = sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "2", msg.Header.Get("Body-Seq"))
	require.Contains(t, msg.Header.Get("Body-Error"), "unavailable: ")
	require.Empty(t, msg.Header.Get("Body-End"))
	require.NoError(t, nc.Flush())
	n, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "nothing follows")
}
