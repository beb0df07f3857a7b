package consumer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func call(t *testing.T, nc *nats.Conn, owner, body string) *events.Reply {
	t.Helper()
	m, err := nc.Request(subjects.Call(events.Fetch, owner, "w"), []byte(body), patience)
	require.NoError(t, err)
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	return r
}

// Calls beyond their owner's limit are refused at once and not stored. Other owners are not affected, and limits can
// change at any time.
func TestDoorLimits(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: echo}
	f := start(t, nc, testConfig(), d)
	limited := func(owner, body string) bool {
		r := call(t, nc, owner, body)
		if r.Failure != nil {
			require.Equal(t, events.ReasonRate, r.Failure.Reason)
			require.Equal(t, 429, r.Status)
		}
		return r.Failure != nil
	}
	// In the hours that the bucket takes to fill up there are three.
	f.catalog.SetPolicy("acme", workers.Policy{Calls: 1, CallBurst: 3})
	refused := 0
	begin := time.Now()
	for range 10 {
		if limited("acme", "x") {
			refused++
		}
		require.False(t, limited("other", "x"))
	}
	filled := int(time.Since(begin)/time.Second) + 1
	require.GreaterOrEqual(t, refused, 7-filled)
	require.LessOrEqual(t, refused, 7)
	require.Len(t, d.events(), 20-refused, "what is refused is not stored")

	f.catalog.SetPolicy("acme", workers.Policy{CallBytes: 1000})
	require.False(t, limited("acme", strings.Repeat("x", 5000)), "one that is larger takes all of a second")
	require.True(t, limited("acme", strings.Repeat("x", 900)))
	require.False(t, limited("other", strings.Repeat("x", 5000)))

	f.catalog.SetPolicy("acme", workers.Policy{})
	for range 10 {
		require.False(t, limited("acme", "x"))
	}
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
}

// Tasks that workers send have limits of their own. Without them in a policy, the limits of calls apply.
func TestDoorLimitsSends(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	f := start(t, nc, testConfig(), &dispatcher{handle: echo})
	passed := func(owner string, n, size int) (passed int, why string) {
		for range n {
			if failure := f.AdmitSend(owner, 1, size); failure != nil {
				require.Equal(t, events.ReasonRate, failure.Reason)
				why = failure.Message
			} else {
				passed++
			}
		}
		return passed, why
	}
	for _, c := range []struct {
		policy workers.Policy
		most   int // at once
		why    string
	}{
		{workers.Policy{Calls: 1}, 1, "owner acme may send 1 tasks in a second"},
		{workers.Policy{Calls: 1, CallBurst: 20}, 20, "owner acme may send 1 tasks in a second"},
		{workers.Policy{Calls: 1, Sends: 30}, 30, "owner acme may send 30 tasks in a second"},
		{workers.Policy{CallBytes: 1000}, 10, "owner acme may send 1000 bytes of tasks in a second"},
		{workers.Policy{CallBytes: 1000, SendBytes: 3000}, 30, "owner acme may send 3000 bytes of tasks in a second"},
	} {
		f.catalog.SetPolicy("acme", workers.Policy{})
		require.Nil(t, f.AdmitSend("acme", 1, 1)) // the next policy begins with full buckets
		f.catalog.SetPolicy("acme", c.policy)
		begin := time.Now()
		n, why := passed("acme", 1000, 100)
		require.GreaterOrEqual(t, n, c.most)
		require.LessOrEqual(t, n, c.most+int(time.Since(begin).Seconds()*30)+1, "%+v", c.policy)
		require.Equal(t, c.why, why)
		n, _ = passed("beta", 1000, 100)
		require.Equal(t, 1000, n)
	}
	f.catalog.SetPolicy("acme", workers.Policy{Calls: 1, Sends: 8})
	for range 50 {
		f.AdmitSend("acme", 1, 1)
	}
	require.Nil(t, call(t, nc, "acme", "x").Failure, "what is sent takes nothing of what may be called")
}

// Each process admits its share.
func TestDoorIsSharedByProcesses(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	f := start(t, nc, testConfig(), &dispatcher{handle: echo})
	f.SetProcesses(4)
	f.catalog.SetPolicy("acme", workers.Policy{Calls: 1, CallBurst: 40})
	passed := 0
	begin := time.Now()
	for range 20 {
		if call(t, nc, "acme", "x").Failure == nil {
			passed++
		}
	}
	require.GreaterOrEqual(t, passed, 10)
	require.LessOrEqual(t, passed, 10+int(time.Since(begin)/time.Second)+1)
}
