package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// mirror returns the event that it received, for every kind.
const mirror = `
export default {
  async fetch(request) {
    if (request.url.endsWith("/bad")) return new Response("bad", { status: 418 });
    if (request.url.endsWith("/throw")) throw new Error("kaputt");
    const headers = Object.fromEntries(request.headers);
    return Response.json({ method: request.method, url: request.url, headers, body: await request.text() }, { headers: { "x-b": "2", "x-a": "1" } });
  },
  async task(event) {
    if (event.payload === "no") return { success: false, error: "declined" };
    if (event.payload === "throw") { event.noRetry(); throw new Error("kaputt"); }
    if (event.payload === "hang") await new Promise((r) => setTimeout(r, 3000));
    const { payload, id, attempt } = event;
    return { payload: payload instanceof Uint8Array ? await event.text() : payload, id, attempt,
      type: new Headers(event.headers).get("content-type"), extra: new Headers(event.headers).get("x-extra") };
  },
  async scheduled(event) { return { time: event.scheduledTime, cron: event.cron }; },
};`

func startMirror(t *testing.T) *fleettest.Fleet {
	f := fleettest.Start(t)
	require.Regexp(t, `^deployed acme/mirror version 1-[0-9a-f]{12} \(fetch, task, scheduled\), active in 1 of 1 process\n$`,
		f.Deploy(t, write(t, "mirror.js", mirror), "--owner", "acme"))
	return f
}

func TestSend(t *testing.T) {
	t.Parallel()
	f := startMirror(t)
	file := write(t, "body.txt", "from a file")
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		out         string // JSON, or text
		err         []string
	}{
		{name: "fetch without a body is a GET", args: []string{"fetch"},
			out: `{"method":"GET","url":"http://mirror.acme.pinwheel/","headers":{},"body":""}`,
			err: []string{"HTTP 200 OK\n", "event ", ", attempt 1, ", ", version 1-", "content-type: application/json\nx-a: 1\nx-b: 2\n"}},
		{name: "fetch with all that it can have",
			args: []string{"fetch", "--data", "x", "--method", "PUT", "--path", "/a?b=c", "--header", "X-One=1", "--header",
				"X-Two=a=b", "--content-type", "text/x"},
			out: `{"method":"PUT","url":"http://mirror.acme.pinwheel/a?b=c","headers":{"x-one":"1","x-two":"a=b","content-type":"text/x"},"body":"x"}`},
		{name: "body from a file", args: []string{"fetch", "--data-file", file},
			out: `{"method":"POST","url":"http://mirror.acme.pinwheel/","headers":{},"body":"from a file"}`},
		{name: "body from stdin", stdin: "from stdin", args: []string{"fetch", "--data-file", "-"},
			out: `{"method":"POST","url":"http://mirror.acme.pinwheel/","headers":{},"body":"from stdin"}`},
		{name: "a status of 400 or more is an error", args: []string{"fetch", "--path", "/bad"}, code: 1, out: "bad",
			err: []string{"HTTP 418 I'm a teapot\n"}},
		{name: "a throw is an error", args: []string{"fetch", "--path", "/throw"}, code: 1,
			out: "exception: Error: kaputt\n", err: []string{"HTTP 500 Internal Server Error, exception: Error: kaputt\n"}},
		{name: "task with JSON", args: []string{"task", "--data", `{"a":1}`, "--id", "id-1", "--header", "X-Extra=yes"},
			out: `{"success":true,"data":{"payload":{"a":1},"id":"id-1","attempt":1,"type":"application/json","extra":"yes"}}`, err: []string{"success\nevent id-1, attempt 1"}},
		{name: "task with text", args: []string{"task", "--data", "a,b", "--content-type", "text/csv", "--id", "id-2"},
			out: `{"success":true,"data":{"payload":"a,b","id":"id-2","attempt":1,"type":"text/csv","extra":null}}`},
		{name: "a type in the headers stays", args: []string{"task", "--data", "1", "--header", "content-type=text/plain",
			"--id", "id-3"},
			out: `{"success":true,"data":{"payload":1,"id":"id-3","attempt":1,"type":"text/plain","extra":null}}`},
		{name: "success:false is an error", args: []string{"task", "--data", `"no"`}, code: 1,
			out: `{"success":false,"error":"declined"}`, err: []string{"no success\n"}},
		{name: "a task that throws is an error", args: []string{"task", "--data", `"throw"`}, code: 1,
			out: `{"success":false,"error":"exception: Error: kaputt"}`, err: []string{"no success, exception: Error: kaputt\n"}},
		{name: "scheduled", args: []string{"scheduled", "--time", "2026-01-02T03:04:05Z", "--cron", "5 4 * * *"},
			out: `{"success":true,"data":{"time":1767323045000,"cron":"5 4 * * *"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"send", c.args[0], "acme/mirror"}, c.args[1:]...)
			r := f.PinwheelWith(c.stdin, args...)
			require.Equal(t, c.code, r.Code, "%s\n%s", r.Out, r.Err)
			if strings.HasPrefix(c.out, "{") {
				require.JSONEq(t, c.out, r.Out)
			} else {
				require.Equal(t, c.out, r.Out)
			}
			for _, want := range c.err {
				require.Contains(t, r.Err, want)
			}
		})
	}
}

func TestSendThatCannotSucceed(t *testing.T) {
	t.Parallel()
	f := startMirror(t)
	r := f.Pinwheel("send", "fetch", "acme/nobody")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "HTTP 404 Not Found, no-worker: ")

	r = f.Pinwheel("send", "fetch", "acme/mirror", "--method", "GET", "--data", "x")
	require.Equal(t, 2, r.Code, "the fleet need not be asked")
	require.Contains(t, r.Err, "Http-Method GET cannot carry a body")
	r = f.Pinwheel("send", "fetch", "acme/mirror", "--header", "A b=c")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "A b")
	r = f.Pinwheel("send", "task", "acme/mirror", "--data", "{", "--content-type", "application/json")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "body is not the JSON that Content-Type says it is")
	r = f.PinwheelWith(strings.Repeat("x", 1<<20+1), "send", "task", "acme/mirror", "--data-file", "-")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "the body has 1048577 bytes: this NATS takes at most 1048576")
	r = f.PinwheelWith(strings.Repeat("x", 1<<20-100), "send", "task", "acme/mirror", "--data-file", "-")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "the stream refused it")
}

func TestSendThatTakesTooLongExits3(t *testing.T) {
	t.Parallel()
	f := startMirror(t)
	r := f.Pinwheel("send", "task", "acme/mirror", "--data", `"hang"`, "--timeout", "200ms")
	require.Equal(t, 3, r.Code, r.Err)
	require.Regexp(t, `^pinwheel: no reply within 200ms: event for acme/mirror, stored as PINWHEEL_EVENTS:\d+ and not answered yet`, r.Err)
	require.Empty(t, r.Out)
}

func TestSendNoWait(t *testing.T) {
	t.Parallel()
	f := startMirror(t)
	r := f.Pinwheel("send", "task", "acme/mirror", "--no-wait", "--data", "1")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `^stored in PINWHEEL_EVENTS, sequence (\d+), event id \d+\n$`, r.Out)
	require.Empty(t, r.Err)
	r = f.Pinwheel("send", "task", "acme/mirror", "--no-wait", "--id", "once")
	require.Regexp(t, `^stored in PINWHEEL_EVENTS, sequence \d+, event id once\n$`, r.Out)
	r = f.Pinwheel("send", "task", "acme/mirror", "--no-wait", "--id", "once")
	require.Zero(t, r.Code)
	require.Regexp(t, `^stored before in PINWHEEL_EVENTS, sequence \d+, event id once\n$`, r.Out)
	r = f.Pinwheel("send", "task", "acme/mirror", "--id", "once")
	require.Equal(t, 1, r.Code, "its reply goes to somebody else")
	require.Contains(t, r.Err, "an event of this id was published before")
}
