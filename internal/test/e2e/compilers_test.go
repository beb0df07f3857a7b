package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v8 "rogchap.com/v8go"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// sayHot is a worker that echoes JSON, with whether V8 has optimized a hot function of it: bits 4 to 6 of its status
// say so.
const sayHot = `
	function hot(x) { let n = 0; for (let i = 0; i < 100; i++) n += i % x; return n }
	export default { async fetch(request) {
		for (let i = 0; i < 20000; i++) hot(7);
		return Response.json({ got: await request.json(), optimized: (%GetOptimizationStatus(hot) & 0x70) !== 0 });
	} }`

// A policy, and PINWHEEL_COMPILERS, decide which code V8 optimizes. Each fleet has a process of its own, in which V8
// tells.
func TestCompilers(t *testing.T) {
	const variable = "E2E_COMPILERS"
	value := os.Getenv(variable)
	if value == "" {
		for _, c := range []workers.Compilers{workers.CompilersFull, workers.CompilersBaseline, workers.CompilersNone} {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCompilers$", "-test.v")
			cmd.Env = append(os.Environ(), variable+"="+string(c))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", c, out)
			require.Contains(t, string(out), "--- PASS: TestCompilers", c)
		}
		return
	}
	const token = "0123456789abcdef"
	v8.SetFlags("--allow-natives-syntax")
	h := openFleet(t, func(c *config.Config) { c.Compilers, c.ControlToken = value, token }, inProcess)
	c := control.NewClient(h.nc, events.DefaultPrefix, token)
	set := func(owner, compilers string) {
		text, err := json.Marshal(map[string]string{"compilers": compilers})
		require.NoError(t, err)
		_, err = control.Ask(t.Context(), c, control.OwnersSet,
			control.SetOwner{OwnerName: control.OwnerName{Owner: owner}, Policy: text})
		require.NoError(t, err)
	}
	optimizes := func(owner string) bool {
		r := h.reply(h.send(events.Fetch, owner+"/hot", `{"a":[1]}`))
		require.Equal(t, 200, r.Status, "%s", r.Body)
		var said struct {
			Got       json.RawMessage
			Optimized bool
		}
		require.NoError(t, json.Unmarshal(r.Body, &said))
		require.JSONEq(t, `{"a":[1]}`, string(said.Got))
		return said.Optimized
	}
	becomes := func(owner string, want bool) {
		require.Eventually(t, func() bool { return optimizes(owner) == want }, patience, tick, "%s: %v", owner, want)
	}
	set("safe", "baseline")
	set("full", "full")
	store, err := deploy.Open(t.Context(), h.js, deploy.Config{})
	require.NoError(t, err)
	for _, owner := range []string{"safe", "full", "free"} {
		d, err := store.Deploy(t.Context(), deploy.Request{Owner: owner, Name: "hot",
			Bundle: &bundle.Bundle{Code: sayHot, File: "hot.js"}}, h.check)
		require.NoError(t, err)
		h.inEffect(d)
	}
	all := value == string(workers.CompilersFull)
	shown := map[string]map[string]string{
		"full":     {"safe": " baseline ", "full": " full "},
		"baseline": {"safe": " baseline ", "full": " baseline (fleet) "},
		"none":     {"safe": " none (fleet) ", "full": " none (fleet) "},
	}
	cfg := h.fleet.Config()
	cfg.NatsURL, cfg.NatsPort = h.fleet.URL(), 4222
	var table, errs bytes.Buffer
	require.Zero(t, cli.MainWith(cfg, []string{"owners", "ls"}, strings.NewReader(""), &table, &errs), &errs)
	for owner, want := range shown[value] {
		require.Regexp(t, "(?m)^"+owner+" .*"+regexp.QuoteMeta(want), table.String())
	}
	_, told := runDoctor(t, cfg)
	if line := regexp.MustCompile(`compilers +owners get no more .*`).FindString(told); all {
		require.Empty(t, line, told)
	} else {
		require.Contains(t, line, "PINWHEEL_COMPILERS allows: 1 × "+value, told)
	}
	becomes("safe", false)
	becomes("full", all)
	becomes("free", all)
	set("free", "baseline")
	becomes("free", false)
	set("safe", "")
	becomes("safe", all)
}
