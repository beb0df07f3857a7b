package isolates

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// lines is a host that keeps what is logged.
type lines struct {
	Host
	mu   sync.Mutex
	text []string
}

func (l *lines) Log(line events.LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, line.Level+" "+line.Owner+"/"+line.Worker+" "+line.Text)
}

// A deployer gets a warning about functions that other runtimes call as handlers and that nothing calls here.
func TestCheckWarnsOfHandlersThatNothingCalls(t *testing.T) {
	t.Parallel()
	h := &lines{}
	c, err := OpenChecker(h, CheckConfig{})
	require.NoError(t, err)
	defer c.Close()
	check := func(code string, mode workers.Mode) (workers.Handlers, error) {
		h.text = nil
		w := worker("w", code)
		w.Mode = mode
		return c.Check(t.Context(), w)
	}
	has, err := check(`export default { task() {}, async email() {}, tail() {}, connect: 1, helper() {}, onIdle() {} }`, workers.Pinned)
	require.NoError(t, err)
	require.Equal(t, workers.Handlers{Kinds: []events.Kind{events.Task}}, has)
	require.Equal(t, []string{
		"warn acme/w nothing calls email(), which the default export has: a worker gets fetch, task and scheduled events",
		"warn acme/w nothing calls tail(), which the default export has: a worker's output is on the NATS subject pinwheel.logs.OWNER.WORKER",
		`warn acme/w nothing calls onIdle(), which the default export has: the mode persistent calls it: say "mode": "persistent" in the manifest`,
	}, h.text)
	has, err = check(`export default { queue() {}, fetch() {} }`, workers.Pinned)
	require.NoError(t, err)
	require.Equal(t, workers.Handlers{Kinds: []events.Kind{events.Fetch}, Queue: true}, has)
	require.Empty(t, h.text)
	has, err = check(`export default { queue() {}, task() {} }`, workers.Pinned)
	require.NoError(t, err, "a deploy refuses it")
	require.Equal(t, workers.Handlers{Kinds: []events.Kind{events.Task}, Queue: true}, has)
	_, err = check(`export default { email() {} }`, workers.Pinned)
	require.ErrorContains(t, err, "no handler")
	require.Len(t, h.text, 1, "it says why that is none")
	for code, mode := range map[string]workers.Mode{
		`export default { task() {}, onIdle() {}, onTerminate() {} }`: workers.Persistent, `export default { task() {} }`: workers.Pinned,
	} {
		_, err = check(code, mode)
		require.NoError(t, err)
		require.Empty(t, h.text, code)
	}
	// Unknown properties may be anything. Workers that run are not asked for them.
	odd := `export default new Proxy({ task() { return "ok" } }, { get(o, name) { if (name in o || ["fetch", "scheduled"].includes(name)) return o[name]; throw new Error(name) } })`
	has, err = check(odd, workers.Pinned)
	require.NoError(t, err)
	require.Equal(t, []events.Kind{events.Task}, has.Kinds)
	require.Empty(t, h.text)
	require.Equal(t, "ok", newBench(t).task(odd, "1")["data"])
	for _, u := range uncalled {
		_, err = check(`class X { fetch() {} `+u.name+`() {} } export default new X()`, workers.Pinned)
		require.NoError(t, err)
		require.Len(t, h.text, 1, u.name)
		require.Contains(t, h.text[0], "nothing calls "+u.name+"()")
	}
}

// A checked module reaches the same addresses as in the fleet. The error for other addresses names the setting.
func TestCheckReachesWhatTheFleetAllows(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("config"))
	}))
	t.Cleanup(s.Close)
	for _, row := range []struct {
		addresses []netip.Prefix
		hosts     []string
		url       string
		want      string
	}{
		{nil, nil, s.URL, "it is in 127.0.0.0/8: loopback (RFC 1122); the fleet's PINWHEEL_ALLOW_PRIVATE_ADDRESSES can allow it"},
		{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, []string{"localhost"}, s.URL,
			"PINWHEEL_ALLOW_PRIVATE_ADDRESSES can allow it"},
		{[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil, s.URL, ""},
		{nil, []string{"localhost"}, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), ""},
	} {
		c, err := OpenChecker(&lines{}, CheckConfig{AllowAddresses: row.addresses, AllowHosts: row.hosts})
		require.NoError(t, err)
		_, err = c.Check(t.Context(), worker("w", `const r = await fetch("`+row.url+`"); if (await r.text() !== "config") throw 1; export default { task() {} }`))
		c.Close()
		if row.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, row.want)
		}
	}
}
