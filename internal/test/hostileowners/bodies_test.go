package hostileowners

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// foreignCredits has acme cancel beta's body, and grant credit for it. acme knows all of beta's credit subject except
// the owner in it.
func foreignCredits(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "long", `export default { fetch: () => new Response("x".repeat(1_000_000)) }`, `{"limits": {"cpuMs": 1000}}`)
	acme, beta := f.as("acme"), f.as("beta")
	for _, text := range []string{"1000000", events.GoneCredit} {
		sub, credit := begin(t, beta, "beta", "long", 50_000)
		for size := 0; size < 50_000; {
			m, err := sub.NextMsg(patience)
			require.NoError(t, err)
			size += len(m.Data)
		}
		require.NoError(t, acme.Publish(strings.Replace(credit, ".beta.", ".acme.", 1), []byte(text)))
		require.NoError(t, acme.Flush())
		require.NoError(t, beta.Publish(credit, []byte("50001"))) // it reaches the process after acme's message
		m, err := sub.NextMsg(patience)
		require.NoError(t, err)
		if len(m.Data) != 1 {
			harm += fmt.Sprintf("acme said %s: beta, who takes 1 byte more, got %d, %v. ", text, len(m.Data), m.Header)
		}
	}
	return harm
}

// begin requests a body in chunks. When its head has arrived, it returns the subscription to the chunks, and the credit
// subject.
func begin(t *testing.T, nc *nats.Conn, owner, worker string, credit int) (chunks *nats.Subscription, subject string) {
	t.Helper()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	m := nats.NewMsg("pinwheel.call.fetch." + owner + "." + worker)
	m.Reply = sub.Subject
	m.Header.Set(events.HeaderBodyCredit, fmt.Sprint(credit))
	require.NoError(t, nc.PublishMsg(m))
	head, err := sub.NextMsg(patience)
	require.NoError(t, err)
	subject = head.Header.Get(events.HeaderBodyCredit)
	require.NotEmpty(t, subject, "%v %s", head.Header, head.Data)
	return sub, subject
}
