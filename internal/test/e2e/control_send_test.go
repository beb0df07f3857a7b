package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// sender answers each kind of event with what it was sent.
const sender = `export default {
	async fetch(request) { return new Response(request.method + " " + new URL(request.url).pathname + " " + await request.text(),
		{ status: 418, headers: { "x-got": request.headers.get("x-own"), "content-type": "text/plain" } }); },
	task(event) { if (event.payload === "fail") throw new Error("no"); return [event.payload, event.headers.get("x-own")]; },
	scheduled(event) { return [event.cron, event.scheduledTime]; },
}`

// reply sends a test event, and returns the reply.
func (h *testFleet) test(fields string) map[string]any {
	h.t.Helper()
	answer := h.ask("events.send", `{"worker":"acme/w",`+fields+`}`)
	require.Equal(h.t, true, answer["stored"])
	require.NotNil(h.t, answer["reply"], answer)
	return answer["reply"].(map[string]any)
}

// A test event runs as every event does, and its reply is told. It is in the audit, without what it carries.
func TestControlSendsTestEvents(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", sender, `{"retries": {"maxAttempts": 1}}`)
	r := h.test(`"kind":"fetch","id":"t1","method":"PUT","path":"/a?b=c","headers":[{"name":"X-Own","value":"yes"}],"body":"hi"`)
	require.Equal(t, []any{418.0, "PUT /a hi", 1.0}, []any{r["status"], r["body"], r["attempt"]})
	require.Contains(t, fmt.Sprint(r["headers"]), "x-got value:yes")
	r = h.test(`"kind":"task","id":"t2","headers":[{"name":"X-Own","value":"yes"}],"body":"{\"n\":1}"`)
	require.JSONEq(t, `{"success":true,"data":[{"n":1},"yes"]}`, r["body"].(string), "JSON is decoded, as by send")
	r = h.test(`"kind":"scheduled","id":"t3","cron":"0 3 * * *","time":"2026-01-02T03:00:00Z"`)
	require.Contains(t, r["body"], `"0 3 * * *",1767322800000`)
	r = h.test(`"kind":"task","id":"t4","body":"\"fail\""`)
	require.Equal(t, []any{"exception", "Error: no"}, []any{r["reason"], r["message"]})
	require.Len(t, h.dead(), 1, "it is an event like all others")

	var sent []string
	for _, c := range h.changes() {
		if c.Action == "events.send" {
			sent = append(sent, string(c.Request))
			require.Equal(t, "acme", c.Owner)
		}
	}
	require.Len(t, sent, 4)
	require.JSONEq(t, `{"id":"t1","kind":"fetch","worker":"acme/w","with":["body","headers","method","path"]}`, sent[0])
}

// The server bounds a test event, and keeps it from setting what only the fleet sets.
func TestControlRefusesTestEvents(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", sender)
	h.test(`"kind":"task","id":"once","body":"1"`)
	header := func(name string) string { return `"headers":[{"name":"` + name + `","value":"x"}]` }
	for fields, want := range map[string]string{
		`"kind":"task","id":"once"`:                                              "409 ",
		`"kind":"task"`:                                                          "400 id is missing",
		`"kind":"tusk","id":"a"`:                                                 "400 kind",
		`"kind":"task","id":"a","path":"/"`:                                      "400 path is for fetch events",
		`"kind":"fetch","id":"a","cron":"* * * * *"`:                             "400 cron is for scheduled events",
		`"kind":"scheduled","id":"a","time":"noon"`:                              "400 time is",
		`"kind":"task","id":"a",` + header("reply-to"):                           `400 headers have "reply-to"`,
		`"kind":"task","id":"a",` + header("Nats-Rollup"):                        "400 headers",
		`"kind":"task","id":"a",` + header("dead-of"):                            "400 headers",
		`"kind":"scheduled","id":"a",` + header("Worker-Version"):                "400 headers",
		`"kind":"task","id":"a",` + header("content-type"):                       "400 headers have content-type",
		`"kind":"fetch","id":"a",` + header("x-forwarded-for"):                   `400 headers have "x-forwarded-for"`,
		`"kind":"fetch","id":"a",` + header("a b"):                               "400 ",
		`"kind":"task","id":"a",` + header("X\\r\\nNats-Rollup"):                 "400 ",
		`"kind":"fetch","id":"a","path":"no"`:                                    "400 ",
		`"kind":"task","id":"a","contentType":"application/json","body":"{"`:     "400 ",
		`"kind":"task","id":"a","body":"` + strings.Repeat("x", 262145) + `"`:    "400 body has 262145 bytes: it has at most 262144",
		`"kind":"task","id":"a","headers":[` + strings.Repeat(`{},`, 64) + `{}]`: "400 headers has 65 entries",
	} {
		_, failure := h.control("events.send", `{"worker":"acme/w",`+fields+`}`)
		require.Contains(t, failure, want, "%.200s", fields)
	}
	_, failure := h.control("events.send", `{"worker":"acme/none","kind":"task","id":"a"}`)
	require.Contains(t, failure, "404 there is no worker acme/none")
	_, failure = h.control("events.send", `{"worker":"acme/w","kind":"task","id":"a"}`, "Authorization", "")
	require.Contains(t, failure, "401 ")
	_, err := h.nc.Request("pinwheel.owner.acme.events.send", []byte(`{"worker":"w","kind":"task","id":"a"}`), patience)
	require.ErrorIs(t, err, nats.ErrNoResponders, "owners publish by themselves")
	require.Empty(t, h.dead())
}

// A long reply is cut between two characters, and bytes that are no text come as they are.
func TestControlTellsTheBeginningOfAReply(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "w", `export default { fetch(r) { return new Response(r.url.endsWith("/bytes") ? new Uint8Array([255, 0]) :
		"é".repeat(1 << 20)); } }`)
	r := h.test(`"kind":"fetch","id":"a","path":"/?x"`)
	require.Equal(t, true, r["cut"])
	require.Equal(t, strings.Repeat("é", len(r["body"].(string))/2), r["body"])
	require.InDelta(t, 64<<10, len(r["body"].(string)), 1)
	r = h.test(`"kind":"fetch","id":"b","path":"/bytes"`)
	text, err := json.Marshal(r["base64"])
	require.NoError(t, err)
	require.JSONEq(t, `"/wA="`, string(text))
}
