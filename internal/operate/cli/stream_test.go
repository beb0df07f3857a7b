package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const streaming = `export default { fetch(r) {
	const q = new URL(r.url).searchParams;
	const n = +q.get("n"), size = +q.get("size"), ms = +q.get("ms");
	let i = 0;
	r.signal.addEventListener("abort", () => console.log("aborted"));
	return new Response(new ReadableStream({
		async pull(c) {
			if (i === n) return c.close();
			if (ms) await new Promise(done => setTimeout(done, ms));
			c.enqueue(new Uint8Array(size).fill(97 + i++ % 26));
		},
		cancel(why) { console.log("cancelled " + why.name) },
	}), { headers: { "content-type": "text/plain" } });
} }`

// deploySource deploys code as dev/stream.
func deploySource(t *testing.T, f *fleettest.Fleet, code, manifest string) *client.Client {
	t.Helper()
	file := t.TempDir() + "/stream.js"
	require.NoError(t, os.WriteFile(file, []byte(code), 0o600))
	require.NoError(t, os.WriteFile(strings.TrimSuffix(file, ".js")+".pinwheel.json", []byte(manifest), 0o600))
	f.Deploy(t, file, "--owner", "dev")
	c, err := client.New(f.NC)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func openFleet(t *testing.T) (*fleettest.Fleet, *client.Client) {
	t.Helper()
	f := fleettest.Start(t)
	return f, deploySource(t, f, streaming, `{"limits":{"cpuMs":60000,"wallMs":120000,"heapMB":32}}`)
}

func stream(ctx context.Context, t *testing.T, c *client.Client, query string) io.ReadCloser {
	t.Helper()
	reply, body, err := c.Open(ctx, client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream", URL: "/?" + query})
	require.NoError(t, err)
	require.Equal(t, 200, reply.Status)
	t.Cleanup(func() { _ = body.Close() })
	return body
}

// A body of 200 MB passes through a heap of 32 MB and messages of 1 MB, in order and complete.
func TestLongBody(t *testing.T) {
	t.Parallel()
	_, c := openFleet(t)
	in := bufio.NewReaderSize(stream(t.Context(), t, c, "n=1000&size=100000"), 100_000)
	chunk := make([]byte, 100_000)
	for i := range 1000 {
		_, err := io.ReadFull(in, chunk)
		require.NoError(t, err)
		require.True(t, bytes.Equal(bytes.Repeat([]byte{byte(97 + i%26)}, 100_000), chunk), "chunk %d", i)
	}
	_, err := in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// A slow reader holds the handler back: the data in transit is limited by the credit that the reader granted.
func TestSlowReaderHoldsBack(t *testing.T) {
	t.Parallel()
	f, c := openFleet(t)
	var came atomic.Int64
	_, err := f.NC.Subscribe("_INBOX.>", func(m *nats.Msg) { came.Add(int64(len(m.Data))) })
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	body := stream(t.Context(), t, c, "n=1000&size=100000")
	_, err = io.ReadFull(body, make([]byte, 10))
	require.NoError(t, err)
	require.Never(t, func() bool { return came.Load() > 2<<20 }, 500*time.Millisecond, 10*time.Millisecond)
	rest, err := io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.EqualValues(t, 1000*100_000-10, rest)
}

// The handler notices a requester that closes the body, whose context ends, or whose connection is lost.
func TestRequesterGoesAway(t *testing.T) {
	t.Parallel()
	f, _ := openFleet(t)
	for name, leave := range map[string]func(body io.Closer, cancel func(), nc *nats.Conn){
		"close":   func(body io.Closer, _ func(), _ *nats.Conn) { _ = body.Close() },
		"context": func(_ io.Closer, cancel func(), _ *nats.Conn) { cancel() },
		"die":     func(_ io.Closer, _ func(), nc *nats.Conn) { nc.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			logs, err := f.NC.SubscribeSync("pinwheel.logs.dev.stream")
			require.NoError(t, err)
			require.NoError(t, f.NC.Flush())
			nc, err := natstest.Dial(f.URL)
			require.NoError(t, err)
			defer nc.Close()
			c, err := client.New(nc)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body := stream(ctx, t, c, "n=100000&size=10&ms=5")
			_, err = io.ReadFull(body, make([]byte, 10))
			require.NoError(t, err)
			began := time.Now()
			leave(body, cancel, nc)
			for _, want := range []string{"aborted", "cancelled AbortError"} {
				m, err := logs.NextMsg(20 * time.Second)
				require.NoError(t, err)
				require.Contains(t, string(m.Data), want)
			}
			t.Logf("the handler heard after %s", time.Since(began))
		})
	}
}

// The handler also notices a requester that gives up before there is a response.
func TestRequesterGivesUpEarly(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { fetch: r => new Promise(done => {
		console.log("waits");
		r.signal.onabort = () => { console.log("aborted"); done(new Response()) };
		setTimeout(done, 20_000);
	}) }`, `{}`)
	logs, err := f.NC.SubscribeSync("pinwheel.logs.dev.stream")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := make(chan error, 1)
	go func() {
		_, _, err := c.Open(ctx, client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream"})
		left <- err
	}()
	for _, want := range []string{"waits", "aborted"} {
		m, err := logs.NextMsg(10 * time.Second)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), want)
		cancel()
	}
	require.ErrorIs(t, <-left, context.Canceled)
}

// A body that breaks off is an error for the reader, not an end.
func TestBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f,
		`export default { fetch: () => { let n = 0; return new Response(new ReadableStream({ async pull(c) {
		await new Promise(done => setTimeout(done, 5));
		if (n++) c.error(new Error("no more")); else c.enqueue(new Uint8Array(5).fill(97));
	} })) } }`, `{}`)
	got, err := io.ReadAll(stream(t.Context(), t, c, ""))
	var failure *events.Failure
	require.True(t, errors.As(err, &failure), "%v", err)
	require.Contains(t, failure.Message, "Error: no more")
	require.Equal(t, "aaaaa", string(got))
	r := f.Pinwheel("send", "fetch", "dev/stream")
	require.Equal(t, "aaaaa", r.Out)
	require.Contains(t, r.Err, "the body broke off")
	require.Equal(t, 1, r.Code)
}

// A reader that hangs up, or that is notified that it has, and that continues to read gets an error: the body is
// incomplete.
func TestBodyThatIsCutShortSaysSo(t *testing.T) {
	t.Parallel()
	f, _ := openFleet(t)
	for name, hangUp := range map[string]func(m *nats.Msg, to string) (subject, text string){
		"credit": func(m *nats.Msg, _ string) (subject, text string) { return m.Reply, events.GoneCredit },
		"cancel": func(_ *nats.Msg, to string) (subject, text string) { return "pinwheel.cancel.dev.stream", to },
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := f.NC.SubscribeSync(nats.NewInbox())
			require.NoError(t, err)
			require.NoError(t, f.NC.Flush())
			call := nats.NewMsg("pinwheel.call.fetch.dev.stream")
			call.Reply = sub.Subject
			call.Header = nats.Header{"Http-Url": {"/?n=10&size=100000"}, "Body-Credit": {"50000"}}
			require.NoError(t, f.NC.PublishMsg(call))
			for size := 0; ; {
				m, err := sub.NextMsg(20 * time.Second)
				require.NoError(t, err)
				require.Empty(t, m.Header.Get(events.HeaderBodyEnd), "it is not whole")
				if size += len(m.Data); m.Header.Get(events.HeaderBodyError) != "" {
					require.Contains(t, m.Header.Get(events.HeaderBodyError), "the requester has gone")
					require.Equal(t, 50_000, size)
					return
				}
				if size == 50_000 && len(m.Data) > 0 {
					subject, text := hangUp(m, sub.Subject)
					require.NoError(t, f.NC.Publish(subject, []byte(text)))
				}
			}
		})
	}
}

// The command prints a long body as it arrives.
func TestSendPrintsLongBodies(t *testing.T) {
	t.Parallel()
	f, _ := openFleet(t)
	r := f.Pinwheel("send", "fetch", "dev/stream", "--path", "/?n=30&size=100000")
	require.Zero(t, r.Code, r.Err)
	require.Len(t, r.Out, 3_000_000)
	require.Contains(t, r.Err, "content-type: text/plain")
}

// A request body of 20 MB is stored in parts, read by the handler at its own pace, and removed when the event has
// ended.
func TestLongRequestBody(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { async fetch(r) {
		let n = 0, sum = 0;
		for await (const chunk of r.body) { n += chunk.length; sum = (sum + chunk[0] + chunk[chunk.length - 1]) % 1e6 }
		return Response.json({ n, sum, method: r.method, type: r.headers.get("content-type") });
	} }`, `{"limits":{"heapMB":16,"cpuMs":10000}}`)
	body := bytes.Repeat([]byte("0123456789"), 2_000_000)
	reply, out, err := c.Open(t.Context(), client.Request{
		Kind: events.Fetch, Owner: "dev", Worker: "stream", BodyFrom: bytes.NewReader(body), ContentType: "text/x-digits",
	})
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	require.Equal(t, 200, reply.Status)
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Contains(t, string(text), `"n":20000000,`)
	require.Contains(t, string(text), `"method":"POST","type":"text/x-digits"`)
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	bodies, err := js.Stream(t.Context(), events.StreamBodies)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := bodies.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	}, patience, 10*time.Millisecond, "the parts of an event that has ended are removed")

	// The command does the same with a large file. An event with missing parts reports that.
	file := t.TempDir() + "/digits"
	require.NoError(t, os.WriteFile(file, body, 0o600))
	r := f.Pinwheel("send", "fetch", "dev/stream", "--data-file", file)
	require.Zero(t, r.Code, r.Err)
	require.Contains(t, r.Out, `"n":20000000,`)
	m := nats.NewMsg("pinwheel.call.fetch.dev.stream")
	m.Header.Set(events.HeaderBodyID, "gone")
	m.Header.Set(events.HeaderBodyParts, "2")
	answer, err := f.NC.RequestMsg(m, 20*time.Second)
	require.NoError(t, err)
	require.Contains(t, answer.Header.Get(events.HeaderError), "part 0 of 2 of body gone is not there")
}

// Bodies in which one part is empty, or all parts are, are read to their end.
func TestEmptyPartsOfLongRequestBodies(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	c := deploySource(t, f, `export default { async fetch(r) { return new Response(r.method + " " + await r.text()) } }`, `{}`)
	_, body, err := c.Open(t.Context(), client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream",
		BodyFrom: bytes.NewReader(nil)})
	require.NoError(t, err)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "POST ", string(text))
	for i, parts := range [][]string{{""}, {"", "a", "", "b"}, {"a", ""}, {"", ""}} {
		id := fmt.Sprintf("body-%d", i)
		for n, part := range parts {
			answer, err := f.NC.Request(fmt.Sprintf("pinwheel.body.dev.%s.%d", id, n), []byte(part), 20*time.Second)
			require.NoError(t, err)
			require.NotContains(t, string(answer.Data), "error")
		}
		m := nats.NewMsg("pinwheel.call.fetch.dev.stream")
		m.Header.Set(events.HeaderBodyID, id)
		m.Header.Set(events.HeaderBodyParts, strconv.Itoa(len(parts)))
		answer, err := f.NC.RequestMsg(m, 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, "POST "+strings.Join(parts, ""), string(answer.Data), "%q", parts)
	}
	m := nats.NewMsg("pinwheel.call.fetch.dev.stream")
	m.Header.Set(events.HeaderBodyID, "none")
	m.Header.Set(events.HeaderBodyParts, "0")
	answer, err := f.NC.RequestMsg(m, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, "400", answer.Header.Get(events.HeaderStatus))
	require.Contains(t, answer.Header.Get(events.HeaderError), "1 to 1048576")
}

// The parts of a failed event are kept for its replay.
func TestLongRequestBodyIsReplayed(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	const limits = `"limits":{"heapMB":16,"cpuMs":10000}`
	c := deploySource(t, f, `export default { fetch(r) { if (r.method === "POST") throw new Error("not yet"); return new Response() } }`,
		`{`+limits+`,"retries":{"fetch":true,"maxAttempts":1}}`)
	replies, err := f.NC.SubscribeSync("_INBOX.>")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	body := bytes.Repeat([]byte("0123456789"), 300_000)
	_, _, err = c.Open(t.Context(), client.Request{Kind: events.Fetch, Owner: "dev", Worker: "stream",
		BodyFrom: bytes.NewReader(body)})
	require.ErrorContains(t, err, "not yet")
	deploySource(t, f, `export default { async fetch(r) { let n = 0; for await (const c of r.body ?? []) n += c.length; return new Response(`+"`${n} bytes`"+`) } }`,
		`{`+limits+`}`)
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	letters := deadletter.NewStore(js, "pinwheel")
	require.Eventually(t, func() bool {
		n, err := letters.Count(t.Context(), deadletter.Filter{})
		return err == nil &&
			n == 1
	}, patience, 10*time.Millisecond)
	r := f.Pinwheel("dead", "replay", "--all")
	require.Zero(t, r.Code, r.Err)
	for {
		m, err := replies.NextMsg(20 * time.Second)
		require.NoError(t, err)
		if string(m.Data) == "3000000 bytes" {
			break
		}
	}
}
