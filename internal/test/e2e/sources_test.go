package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// A task handler and a queue handler know the source of a message, and a publisher cannot pretend to be one.
func TestHandlersKnowTheSource(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.policy = workers.Policy{Consume: []string{"stream:ORDERS", "kv:FLAGS"}}
	h.setPolicyOf("acme", h.policy)
	orders, err := h.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}})
	require.NoError(t, err)
	kv, err := h.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FLAGS"})
	require.NoError(t, err)
	lines, err := h.nc.SubscribeSync("pinwheel.logs.acme.*")
	require.NoError(t, err)
	say := func() string {
		m, err := lines.NextMsg(patience)
		require.NoError(t, err)
		var line struct{ Text string }
		require.NoError(t, json.Unmarshal(m.Data, &line))
		return line.Text
	}
	const told = `JSON.stringify([e.source, e.headers.get("customer"), e.headers.get("source-stream"), `
	h.deploy("acme", "hello", `export default { task(e) { console.log(`+told+`e.payload])) } }`,
		`{"sources": [{"stream": "ORDERS", "subjects": ["orders.new.*"], "start": "all"}]}`)
	message := &nats.Msg{Subject: "orders.new.7", Header: nats.Header{"Customer": {"7"}, "Source-Stream": {"FORGED"},
		"Reply-To": {"_INBOX.x"}}, Data: []byte(`{"id":7}`)}
	_, err = h.js.PublishMsg(t.Context(), message)
	require.NoError(t, err)
	stored, err := orders.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(
		`[{"stream":"ORDERS","subject":"orders.new.7","sequence":1,"time":%q},"7","ORDERS",{"id":7}]`,
		stored.Time.UTC().Format("2006-01-02T15:04:05.000Z")), say())

	message.Subject = "pinwheel.events.task.acme.hello"
	_, err = h.js.PublishMsg(t.Context(), message)
	require.NoError(t, err)
	require.JSONEq(t, `[null,"7",null,{"id":7}]`, say())

	code, listed, errs := h.command("", "sources", "ls", "--owner", "acme")
	require.Zero(t, code, errs)
	require.Regexp(t, `acme/hello +0 +stream ORDERS +orders.new.\* +0 +- +0 +no process`, listed, "without a token processes do not tell")
	code, listed, _ = h.command("", "sources", "reset", "acme/hello", "--to", "all")
	require.Equal(t, 2, code)
	require.Contains(t, listed, "would reset source 0 of acme/hello, stream ORDERS: 1 messages come")
	code, _, errs = h.command("", "sources", "reset", "acme/hello", "--to", "all", "--yes")
	require.Zero(t, code, errs)
	require.Contains(t, say(), `"sequence":1`, "it comes again")
	changes := h.changes()
	require.Equal(t, "sources.reset", changes[len(changes)-1].Action)

	h.deploy("acme", "batches", `export default { queue(b) { for (const e of b.messages) console.log(`+told+`e.body])) } }`,
		`{"sources": [{"kv": "FLAGS"}], "batch": {"maxWaitMs": 0}}`)
	require.Eventually(t, func() bool {
		s, err := h.js.Stream(t.Context(), "KV_FLAGS")
		return err == nil && s.CachedInfo().State.Consumers == 1
	}, patience, tick)
	revision, err := kv.PutString(t.Context(), "checkout", "true")
	require.NoError(t, err)
	var out []struct {
		Key, Operation, Subject string
		Sequence                uint64
	}
	text := say()
	_ = json.Unmarshal([]byte(text), &out) // the first element is the source
	require.NotEmpty(t, out, text)
	require.Equal(t, "checkout", out[0].Key, text)
	require.Equal(t, "put", out[0].Operation)
	require.Equal(t, "$KV.FLAGS.checkout", out[0].Subject)
	require.Equal(t, revision, out[0].Sequence)

	message.Subject, message.Data = "orders.new.8", []byte("{")
	message.Header["Content-Type"] = []string{"application/json"}
	_, err = h.js.PublishMsg(t.Context(), message)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.dead()) == 1 }, patience, tick)
	require.Equal(t, "task", h.dead()[0].Kind)
	require.Equal(t, "acme", h.dead()[0].Owner)
	require.Equal(t, events.ReasonMalformed, h.dead()[0].Failure.Reason)
}
