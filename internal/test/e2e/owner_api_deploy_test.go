package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// uploaded stores a bundle in parts as owner, and returns the request that deploys it.
func uploaded(t *testing.T, nc *nats.Conn, owner, worker, code string) control.DeployVersion {
	t.Helper()
	c, err := client.New(nc)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	b, err := c.Store(t.Context(), owner, strings.NewReader(code))
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(code))
	return control.DeployVersion{
		WorkerName: control.WorkerName{Worker: worker}, File: "w.js",
		Bundle: control.UploadedBundle{ID: b.ID, Parts: b.Parts, Code: len(code), SHA256: hex.EncodeToString(sum[:])},
	}
}

// deployAsOwner sends a request to deploy to the owner API.
func deployAsOwner(t *testing.T, nc *nats.Conn, owner string,
	r control.DeployVersion) (d control.DeployedVersion, failure string) {
	t.Helper()
	body, err := json.Marshal(r)
	require.NoError(t, err)
	answer, failure := askAsOwner(t, nc, owner, "versions.deploy", string(body))
	if failure == "" {
		require.NoError(t, json.Unmarshal([]byte(answer), &d))
	}
	return d, failure
}

// mustDeployAsOwner deploys code as the newest version, and waits until it is in effect.
func mustDeployAsOwner(t *testing.T, nc *nats.Conn, owner, worker, code string) control.DeployedVersion {
	t.Helper()
	d, failure := deployAsOwner(t, nc, owner, uploaded(t, nc, owner, worker, code))
	require.Empty(t, failure)
	_, err := control.NewOwnerClient(nc, events.DefaultPrefix, owner).Await(t.Context(), owner+"/"+worker, d.Deployment)
	require.NoError(t, err)
	return d
}

// doneJob waits for a job of an owner, and returns what it says then.
func doneJob(t *testing.T, nc *nats.Conn, owner, job string) (answer string) {
	t.Helper()
	require.Eventually(t, func() bool {
		answer, _ = askAsOwner(t, nc, owner, "dead.job", fmt.Sprintf(`{"job":%q}`, job))
		return strings.Contains(answer, `"state":"done"`)
	}, patience, 5*time.Millisecond)
	return answer
}

const (
	goodVersion = `export default { task(event) { console.log("good " + event.id); } }`
	badVersion  = `export default { task(event) { event.noRetry(); throw new Error("bad version"); } }`
)

// TestAnOwnerDeploysRollsBackAndReplays is what an owner does with nothing but its NATS user: it deploys, sees that the
// version is bad, rolls back, replays its dead letter and sees that it runs. It can neither see nor name what is
// another's.
func TestAnOwnerDeploysRollsBackAndReplays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file     string
		prefixes []string
	}{{"users.conf", []string{"_INBOX.{owner}."}}, {"accounts.conf", []string{"_INBOX.{owner}.", "_R_."}}} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartConfigured(t, "../../../deploy/nats/"+c.file)
			h := openSecured(t, url, c.prefixes...)
			acme, beta := as(t, url, "acme"), as(t, url, "beta")
			first := mustDeployAsOwner(t, acme, "acme", "w", goodVersion)
			require.True(t, first.Stored && first.Changed)
			require.Equal(t, []events.Kind{events.Task}, first.Handlers)
			mustDeployAsOwner(t, beta, "beta", "w", goodVersion)
			second := mustDeployAsOwner(t, acme, "acme", "w", badVersion)
			require.Equal(t, 2, second.Number)

			feed, err := acme.SubscribeSync("pinwheel.feed.acme." + tailID)
			require.NoError(t, err)
			require.NoError(t, acme.Flush())
			_, failure := askAsOwner(t, acme, "acme", "tail", fmt.Sprintf(`{"id":%q}`, tailID))
			require.Empty(t, failure)
			publisher, err := client.New(acme)
			require.NoError(t, err)
			_, err = publisher.Publish(t.Context(), client.Request{Kind: events.Task, Owner: "acme", Worker: "w", ID: "order"})
			require.NoError(t, err)
			require.NoError(t, publisher.Close())
			var letters string
			require.Eventually(t, func() bool {
				letters, failure = askAsOwner(t, acme, "acme", "dead.list", "")
				return strings.Contains(letters, "bad version")
			}, patience, 20*time.Millisecond, failure)
			answer, failure := askAsOwner(t, acme, "acme", "deployments.rollback", `{"worker":"w","message":"orders were lost"}`)
			require.Empty(t, failure)
			var back control.Redeployed
			require.NoError(t, json.Unmarshal([]byte(answer), &back))
			require.Equal(t, first.Version, back.Deployment.Base())
			_, err = control.NewOwnerClient(acme, events.DefaultPrefix, "acme").Await(t.Context(), "acme/w", back.Deployment)
			require.NoError(t, err)
			answer, failure = askAsOwner(t, acme, "acme", "dead.replay", `{"all":true}`)
			require.Empty(t, failure)
			var job struct{ Job string }
			require.NoError(t, json.Unmarshal([]byte(answer), &job))
			require.Contains(t, doneJob(t, acme, "acme", job.Job), `"done":1,"failed":0`)
			entries(t, feed, func(list []tail.Entry) bool {
				return len(list) > 0 && strings.HasPrefix(list[len(list)-1].Text, "good order")
			})
			changes, failure := askAsOwner(t, acme, "acme", "audit.list", "")
			require.Empty(t, failure)
			require.Contains(t, changes, `"action":"versions.deploy"`)
			require.Contains(t, changes, second.Version)
			require.NotContains(t, changes, "beta")

			// Another owner's worker is not named, and neither are its parts.
			others := uploaded(t, beta, "beta", "w", goodVersion+"//")
			_, failure = deployAsOwner(t, acme, "acme", others)
			require.Contains(t, failure, "400 part 0 of 1 of bundle "+others.Bundle.ID+" is not there")
			others.Worker = "beta/w"
			_, failure = deployAsOwner(t, acme, "acme", others)
			require.Contains(t, failure, `403 worker "beta/w" is not of owner acme`)
			answer, failure = askAsOwner(t, beta, "beta", "versions.list", `{"worker":"w"}`)
			require.Empty(t, failure)
			require.Equal(t, 1, strings.Count(answer, `"deployedAt"`), answer)
			d, failure := deployAsOwner(t, beta, "beta", others)
			require.Empty(t, failure, "its parts are still there")
			require.Equal(t, 2, d.Number)

			_, failure = askAsOwner(t, acme, "acme", "workers.rm", `{"worker":"w"}`)
			require.Empty(t, failure)
			require.Len(t, h.ask("workers.list", "")["workers"], 1, "beta's is left")
		})
	}
}

// What an owner says of its bundle and its worker is checked, and the bundle is not stored when something is wrong.
func TestUploadsThatLie(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	sourceMap := func(text string) func(*control.DeployVersion) { // replaces the code too
		return func(r *control.DeployVersion) {
			*r = uploaded(t, h.nc, "acme", "w", goodVersion+text)
			r.Bundle.Code, r.Bundle.SourceMap = len(goodVersion), len(text)
		}
	}
	for name, c := range map[string]struct {
		change func(*control.DeployVersion)
		want   string
	}{
		"another hash":  {func(r *control.DeployVersion) { r.Bundle.SHA256 = strings.Repeat("0", 64) }, "400 bundle "},
		"no hash":       {func(r *control.DeployVersion) { r.Bundle.SHA256 = "" }, "400 bundle.sha256"},
		"less":          {func(r *control.DeployVersion) { r.Bundle.Code++ }, "400 bundle "},
		"more":          {func(r *control.DeployVersion) { r.Bundle.Code-- }, "400 bundle "},
		"no code":       {func(r *control.DeployVersion) { r.Bundle.Code = 0 }, "400 bundle.code is 0"},
		"too much code": {func(r *control.DeployVersion) { r.Bundle.Code = 1 << 40 }, "400 bundle.code is 1099511627776"},
		"below zero": {func(r *control.DeployVersion) { r.Bundle.Code, r.Bundle.SourceMap = len(goodVersion)+1, -1 },
			"400 bundle.sourceMap is -1"},
		"too much map":        {func(r *control.DeployVersion) { r.Bundle.SourceMap = 1 << 40 }, "400 bundle.sourceMap"},
		"more parts":          {func(r *control.DeployVersion) { r.Bundle.Parts = 2 }, "400 part 1 of 2 of bundle"},
		"no parts":            {func(r *control.DeployVersion) { r.Bundle.Parts = 0 }, "400 bundle.parts is 0"},
		"very many parts":     {func(r *control.DeployVersion) { r.Bundle.Parts = 1 << 30 }, "400 bundle.parts"},
		"another id":          {func(r *control.DeployVersion) { r.Bundle.ID = "x" }, "400 part 0 of 1"},
		"wildcard id":         {func(r *control.DeployVersion) { r.Bundle.ID = "*" }, "400 bundle.id"},
		"id with a dot":       {func(r *control.DeployVersion) { r.Bundle.ID = "a.0.b" }, "400 bundle.id"},
		"file with escapes":   {func(r *control.DeployVersion) { r.File = "\x1b[2Jw.js" }, "400 file"},
		"file in a directory": {func(r *control.DeployVersion) { r.File = "../w.js" }, "400 file"},
		"file with a line":    {func(r *control.DeployVersion) { r.File = "w:1:1.js" }, "400 file"},
		"no file":             {func(r *control.DeployVersion) { r.File = "" }, "400 file"},
		"long file":           {func(r *control.DeployVersion) { r.File = strings.Repeat("x", 300) + ".js" }, "400 file"},
		"no such mode":        {func(r *control.DeployVersion) { r.Spec.Mode = "root" }, `400 mode "root"`},
		"limits":              {func(r *control.DeployVersion) { r.Spec.Limits.HeapMB = 1 << 20 }, "400 limits.heapMB"},
		"cron": {func(r *control.DeployVersion) { r.Spec.Schedules = []workers.Schedule{{Name: "a", Cron: "x"}} },
			"400 schedules[0]"},
		"queue of another": {func(r *control.DeployVersion) { r.Spec.Queues = map[string]string{"Q": "beta/w"} },
			"400 queues.Q"},
		"vars": {func(r *control.DeployVersion) { r.Spec.Vars = map[string]string{"A": strings.Repeat("x", 200<<10)} },
			"400 vars"},
		"var like a secret": {func(r *control.DeployVersion) { r.Spec.Vars = map[string]string{"API_KEY": "s3cret"} },
			"400 vars.API_KEY looks like a secret"},
		"missing secret": {func(r *control.DeployVersion) { r.Spec.Secrets = []string{"NONE"} },
			"409 acme/w is refused: it names the secret NONE"},
		"tag":     {func(r *control.DeployVersion) { r.Tag = strings.Repeat("x", 101) }, "400 tag"},
		"by":      {func(r *control.DeployVersion) { r.By = strings.Repeat("x", 1001) }, "400 by"},
		"percent": {func(r *control.DeployVersion) { r.Percent = -1 }, "400 percent"},
		"steps":   {func(r *control.DeployVersion) { r.Steps = make([]workers.Step, 100) }, "400 steps"},
		"two ways": {func(r *control.DeployVersion) { r.UploadOnly, r.Percent = true, 10 },
			"400 uploadOnly, percent and steps"},
		"guard of nothing":  {func(r *control.DeployVersion) { r.Guard.Failures = 2 }, "400 guard needs steps"},
		"share of nothing":  {func(r *control.DeployVersion) { r.Percent = 10 }, "409 "},
		"map with escapes":  {sourceMap(`{"version":3,"sources":["\u001b[2J.ts"],"mappings":"AAAA"}`), "400 source map: sources[0]"},
		"map with sections": {sourceMap(`{"version":3,"sections":[{"map":{"version":3,"sources":["\u001b"],"mappings":"AAAA"}}]}`), "400 source map: sections"},
		"map of depth":      {sourceMap(strings.Repeat("[", 20_000)), "400 source map"},
		"map that is none":  {sourceMap(`{"version":9,"mappings":"AAAA"}`), "400 source map"},
		"map is no text":    {sourceMap("\xff\xfe"), "400 code and source map must be UTF-8"},
	} {
		r := uploaded(t, h.nc, "acme", "w", goodVersion)
		c.change(&r)
		_, failure := deployAsOwner(t, h.nc, "acme", r)
		require.True(t, strings.HasPrefix(failure, c.want), "%s: %q", name, failure)
		require.NotContains(t, failure, "s3cret")
	}
	for body, want := range map[string]string{
		`{"worker":"w","number":7}`:                           `400 unknown field "number"`,
		`{"worker":"w","spec":{"hash":"x"}}`:                  `400 unknown field "hash"`,
		`{"worker":"w","bundle":` + strings.Repeat("[", 5000): "400 ",
		`{"worker":"a.b"}`:                                    "400 ",
		`{}`:                                                  "400 ",
	} {
		_, failure := askAsOwner(t, h.nc, "acme", "versions.deploy", body)
		require.True(t, strings.HasPrefix(failure, want), "%.80s: %q", body, failure)
	}
	require.Empty(t, h.ask("workers.list", "")["workers"])

	// Parts of refused bundles are removed. Those of a request that says nothing true of them stay their time.
	r := uploaded(t, h.nc, "acme", "w", goodVersion)
	r.File = ""
	_, failure := deployAsOwner(t, h.nc, "acme", r)
	require.NotEmpty(t, failure)
	s, err := h.js.Stream(t.Context(), events.StreamBodies)
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("pinwheel.body.acme."+r.Bundle.ID+".*"))
	require.NoError(t, err)
	require.Empty(t, info.State.Subjects)
}

// A module that does not load is refused with the place of its fault, and one that loops when it has used its time.
// Others are not disturbed.
func TestModulesThatDoNotLoadByTheOwnerAPI(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("beta", "w", goodVersion)
	for code, want := range map[string]string{
		`for (;;) {}`:                          "422 acme/w is refused: ",
		`throw new Error("\x1b[2Jtwo\nlines")`: "422 acme/w is refused: Error:  [2Jtwo",
		`export default { task( }`:             "422 acme/w is refused: w.js:1:24: SyntaxError",
		`export default {}`:                    "422 acme/w is refused: no handler",
		`let a = []; for (;;) a.push(new Array(1e5).fill(Math.random()))`: "422 acme/w is refused: ",
	} {
		_, failure := deployAsOwner(t, h.nc, "acme", uploaded(t, h.nc, "acme", "w", code))
		require.True(t, strings.HasPrefix(failure, want), "%s: %q", code, failure)
		require.Nil(t, h.reply(h.send(events.Task, "beta/w", "{}")).Failure)
	}
	r := uploaded(t, h.nc, "acme", "w", `console.log("loaded");`+goodVersion)
	r.DryRun = true
	d, failure := deployAsOwner(t, h.nc, "acme", r)
	require.Empty(t, failure)
	require.Equal(t, []string{"info: acme/w: loaded"}, d.Output)
	require.Len(t, h.ask("workers.list", "")["workers"], 1, "beta's only: a dry run stores nothing")
	_, failure = deployAsOwner(t, h.nc, "acme", r)
	require.Contains(t, failure, "is not there", "its parts are removed")
	require.NoError(t, h.fleet.CheckHealth(t.Context()))
}

// A policy bounds what an owner deploys itself, and not what the fleet's user deploys for it.
func TestOwnersDeployWithinTheirPolicy(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "a", goodVersion)
	set := func(p workers.Policy) { h.setPolicyOf("acme", p) }
	set(workers.Policy{MaxWorkers: 1})
	_, failure := deployAsOwner(t, h.nc, "acme", uploaded(t, h.nc, "acme", "b", goodVersion))
	require.Contains(t, failure, "403 acme/b is refused: owner acme has 1 workers, and may have 1 (maxWorkers)")
	mustDeployAsOwner(t, h.nc, "acme", "a", badVersion)
	mustDeployAsOwner(t, h.nc, "beta", "b", goodVersion)
	h.deploy("acme", "b", goodVersion)
	_, failure = askAsOwner(t, h.nc, "acme", "workers.rm", `{"worker":"b"}`)
	require.Empty(t, failure)
	_, failure = askAsOwner(t, h.nc, "acme", "workers.rm", `{"worker":"a"}`)
	require.Empty(t, failure)
	mustDeployAsOwner(t, h.nc, "acme", "b", goodVersion)

	set(workers.Policy{CodeBytes: 4000})
	_, failure = deployAsOwner(t, h.nc, "acme", uploaded(t, h.nc, "acme", "b", goodVersion+"//"+strings.Repeat("x", 4000)))
	require.Contains(t, failure, "and all may have 4000 (codeBytes)")
	mustDeployAsOwner(t, h.nc, "acme", "b", badVersion)
	set(workers.Policy{Ceilings: workers.Limits{HeapMB: 64}})
	r := uploaded(t, h.nc, "acme", "b", goodVersion)
	r.Spec.Limits.HeapMB = 65
	_, failure = deployAsOwner(t, h.nc, "acme", r)
	require.Contains(t, failure, "403 deploy acme/b: limits.heapMB is 65: this owner may have at most 64")
}

// A process ends between the last part and the version: nothing is stored, and the next process deploys the same parts.
func TestAProcessEndsBetweenPartsAndVersion(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	h := openSecured(t, url, "_INBOX.{owner}.")
	acme := as(t, url, "acme")
	r := uploaded(t, acme, "acme", "w", goodVersion)
	h.stop()
	h = openSecured(t, url, "_INBOX.{owner}.")
	require.Empty(t, h.ask("workers.list", "")["workers"])
	d, failure := deployAsOwner(t, acme, "acme", r)
	require.Empty(t, failure)
	require.Equal(t, 1, d.Number)
}
