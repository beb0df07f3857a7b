package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// untilSeen keeps output until it has a text. Then it refuses more, as a closed pipe does, and the command ends.
type untilSeen struct {
	mu   sync.Mutex
	want string
	text bytes.Buffer
}

var errSeen = errors.New("seen")

func (o *untilSeen) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if strings.Contains(o.text.String(), o.want) {
		return 0, errSeen
	}
	return o.text.Write(p)
}

func (o *untilSeen) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *untilSeen) seen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.text.String(), o.want)
}

// tailed runs pinwheel tail while do is repeated, until the output has want. It returns the output.
func tailed(t *testing.T, cfg config.Config, want string, do func(), args ...string) string {
	t.Helper()
	out, errs := &untilSeen{want: want}, &untilSeen{want: "\x00"}
	done := make(chan int, 1)
	go func() { done <- cli.MainWith(cfg, append([]string{"tail"}, args...), strings.NewReader(""), out, errs) }()
	for deadline := time.Now().Add(time.Minute); ; {
		do()
		select {
		case code := <-done:
			require.True(t, out.seen(), "exit code %d: %s", code, errs.String())
			require.Contains(t, errs.String(), errSeen.Error())
			return out.String()
		default:
			require.True(t, time.Now().Before(deadline), "%q does not come: %s %s", want, out.String(), errs.String())
		}
	}
}

func TestTailCommand(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default {
  task(event) { console.error("\x1b[2J\u202egone\u009b31m\n12:00:00.000 info  beta/w  forged"); },
  fetch() { return new Response("", {status: 404}); },
}`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	task := func() { f.Pinwheel("send", "task", "acme/w") }
	fetch := func() { f.Pinwheel("send", "fetch", "acme/w") }

	out := tailed(t, f.Config, "forged", task, "acme", "--level", "error")
	require.NotContains(t, out, "\x1b")
	require.NotContains(t, out, "\u202e")
	require.NotContains(t, out, "\u009b")
	require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3}\S+ error acme/w  .*gone`, out)
	require.Regexp(t, `(?m)^    12:00:00.000 info  beta/w  forged  \(event `, out, "a line of the worker's does not begin where others do")

	out = tailed(t, f.Config, "404 ok", fetch, "acme/w", "--status", "4xx", "--version", "1")
	require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3}\S+ event acme/w  fetch  404 ok  \S+s, cpu \S+s  version 1-\w+, event \d+, attempt 1$`, out)

	out = tailed(t, f.Config, `"type":"event"`, func() { task(); fetch() }, "acme", "--events", "--json")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(out, "\n", 2)[0]), &line))
	require.Equal(t, []any{"acme", "w", "ok"}, []any{line["owner"], line["worker"], line["outcome"]})
}

func TestTailIsRefused(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	for _, c := range []struct {
		args string
		want string
	}{
		{"acme --level fatal", `pinwheel: --level "fatal": it is one of debug`},
		{"a.b", `pinwheel: owner "a.b": a name is`},
		{"a/b/c", `pinwheel: worker "b/c": a name is`},
		{"a --grep (", "pinwheel: --grep"},
		{"a --status 99", `pinwheel: --status "99"`},
		{"a --sample 0", "pinwheel: --sample is 0: it is a share above 0, to 1"},
		{"a --sample 2", "pinwheel: --sample is 2"},
		{"a --events --logs", "pinwheel: --events and --logs: choose one"},
	} {
		r := f.Pinwheel(append([]string{"tail"}, strings.Fields(c.args)...)...)
		require.Equal(t, 2, r.Code, c.args)
		require.Contains(t, r.Err, c.want)
	}
	nobody := *f
	nobody.Config.Prefix = "nobody"
	r := nobody.Pinwheel("tail", "acme")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "no process of the fleet answers")
}

func TestTailOfNothingSaysSo(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	for target, want := range map[string]string{
		"acme/nobody": "pinwheel: there is no worker acme/nobody; 'pinwheel workers ls' lists those there are. Lines come when one is deployed\n",
		"acme":        "pinwheel: owner acme has no worker; ",
	} {
		errs := &untilSeen{want: want}
		go cli.MainWith(f.Config, []string{"tail", target}, strings.NewReader(""), errs, errs)
		require.Eventually(t, errs.seen, time.Minute, 5*time.Millisecond, "%s: %s", target, errs.String())
	}
}
