package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const controlToken = "a-token-that-is-long-enough"

func withToken(c *config.Config) { c.ControlToken = controlToken }

// control sends a request to an endpoint with the token. It returns the answer, or its error as "CODE text".
func (h *testFleet) control(name, body string, header ...string) (answer map[string]any, failure string) {
	h.t.Helper()
	m := nats.NewMsg("pinwheel.control." + name)
	m.Data = []byte(body)
	m.Header.Set("Authorization", "Bearer "+controlToken)
	for i := 0; i+1 < len(header); i += 2 {
		m.Header.Del(header[i])
		if header[i+1] != "" {
			m.Header.Set(header[i], header[i+1])
		}
	}
	r, err := h.nc.RequestMsg(m, patience)
	require.NoError(h.t, err, name)
	if code := r.Header.Get(micro.ErrorCodeHeader); code != "" {
		return nil, code + " " + r.Header.Get(micro.ErrorHeader)
	}
	require.NoError(h.t, json.Unmarshal(r.Data, &answer), "%s", r.Data)
	return answer, ""
}

func (h *testFleet) ask(name, body string) map[string]any {
	h.t.Helper()
	answer, failure := h.control(name, body)
	require.Empty(h.t, failure, name)
	return answer
}

// id is the name of the process as a service, by which its jobs are found.
func (h *testFleet) id() string { return ask[micro.Info](h, "$SRV.INFO.pinwheel", 1)[0].ID }

// lay stores n dead letters of acme/gone and returns the API to them.
func (h *testFleet) lay(n int) *deadletter.Store {
	h.t.Helper()
	s := events.Subjects(events.DefaultPrefix)
	for i := range n {
		d := &events.DeadLetter{
			Owner: "acme", Worker: "gone", Kind: "task", EventID: fmt.Sprint("e", i+1),
			Failure:  *events.NewFailure(events.ReasonNoWorker, fmt.Sprint("letter ", i+1), ""),
			Attempts: 1, FirstAt: time.Now(), At: time.Now(), Stream: events.StreamEvents, StreamSeq: uint64(1e6 + i),
			Body: []byte(`{"n":1}`),
		}
		_, err := h.js.PublishMsg(h.t.Context(), &nats.Msg{Subject: s.DeadLetter(d, d.Failure.Reason),
			Header: nats.Header(d.Encode()), Data: d.Body})
		require.NoError(h.t, err)
	}
	return deadletter.NewStore(h.js, s)
}

// ended waits until a job has ended.
func (h *testFleet) ended(job any) map[string]any {
	h.t.Helper()
	var state map[string]any
	require.Eventually(h.t, func() bool {
		state = h.ask("dead.job", fmt.Sprintf(`{"job":%q}`, job))
		return state["state"] != "running"
	}, patience, 5*time.Millisecond)
	return state
}

func TestControlIsGuarded(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	guarded, open := 0, 0
	for _, e := range ask[micro.Info](h, "$SRV.INFO.pinwheel", 1)[0].Endpoints {
		name := strings.TrimPrefix(e.Subject, "pinwheel.control.")
		// for other processes, and for owners
		if strings.HasPrefix(name, "job.") || !strings.HasPrefix(e.Subject, "pinwheel.control.") {
			continue
		}
		_, failure := h.control(name, `{}`)
		if e.Metadata["guarded"] == "false" {
			require.NotContains(t, failure, "403", name)
			open++
			continue
		}
		guarded++
		require.Contains(t, failure, "403 "+name+" is off: this fleet has no PINWHEEL_CONTROL_TOKEN, nor PINWHEEL_CONTROL=permissions; open are pool, flow, stats, settings, storage, workers.list, workers.find, workers.flow")
	}
	require.Equal(t, []int{23, 56}, []int{open, guarded})

	h = openFleet(t, withToken)
	_, failure := h.control("dead.list", "", "Authorization", "")
	require.Equal(t, "401 dead.list needs the header Authorization: Bearer TOKEN; open are pool, flow, stats, settings, storage, workers.list, workers.find, workers.flow, workers.versions, workers.active, versions.list, versions.outcomes, deployments.list, owners.list, owners.find, owners.get, secrets.keys, secrets.list, tail, schedules.list, schedules.next, paused.list, paused.active", failure)
	for _, wrong := range []string{"Bearer x", "Bearer ", controlToken, "bearer " + controlToken,
		"Bearer " + controlToken + "x", "Basic x"} {
		_, failure = h.control("dead.list", "", "Authorization", wrong)
		require.Contains(t, failure, "403 dead.list: the header Authorization has not the fleet's token", wrong)
		_, failure = h.control("job."+h.id(), `{"job":"x.1"}`, "Authorization", wrong)
		require.Contains(t, failure, "403 job", wrong)
	}
	require.Contains(t, h.ask("dead.list", ""), "letters")

	h = openFleet(t, func(c *config.Config) { c.Control = config.ControlByPermissions })
	_, failure = h.control("dead.list", "", "Authorization", "")
	require.Empty(t, failure, "NATS decides")
}

// The answer goes to the reply subject with the fleet's permissions, so only to inboxes.
func TestControlAnswersInboxesOnly(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	before := h.unsettled()
	for _, to := range []string{"pinwheel.events.task.acme.w", "$JS.API.STREAM.PURGE.PINWHEEL_DEAD", "anywhere"} {
		require.NoError(t, h.nc.PublishRequest("pinwheel.control.pool", to, nil))
		require.NoError(t, h.nc.PublishRequest("pinwheel.control.dead.list", to, nil))
	}
	anywhere, err := h.nc.SubscribeSync("anywhere")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	h.ask("stats", "")
	require.Equal(t, before, h.unsettled())
	_, err = anywhere.NextMsg(20 * time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)
}

func TestControlRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.lay(1)
	for _, c := range [][3]string{
		{"dead.list", "[]", "400 the request is not a JSON object"},
		{"dead.list", "{", "400 the request is not JSON: it ends too early"},
		{"dead.list", "{} {}", "400 something follows the JSON object"},
		{"dead.list", `{"ownr":"a"}`, `400 unknown field "ownr": a request may have owner, worker, kind, reason, since, until, match, text, replays, after, limit`},
		{"dead.list", `{"owner":1}`, `400 field "owner" is a JSON number: it is a string`},
		{"dead.list", `{"after":-1}`, `400 field "after" is a JSON number -1: it is a whole number, 0 or more`},
		{"dead.list", `{"owner":"a.b"}`, `400 owner "a.b": a name is`},
		{"dead.list", `{"match":"("}`, "400 match"},
		{"dead.list", `{"limit":1001}`, "400 limit is 1001: it is 1 to 1000"},
		{"dead.list", `{"before":7}`, "400 before is 7: it needs newest"},
		{"dead.list", `{"text":"` + strings.Repeat("x", 1001) + `"}`, "400 text has 1001 bytes: it has at most 1000"},
		{"dead.show", ``, "400 id is missing"},
		{"dead.show", `{"id":99}`, "404 no such dead letter: 99"},
		{"dead.edit", `{"id":1}`, "400 nothing to change"},
		{"dead.edit", `{"id":1,"body":"x","bodyBase64":"eA=="}`, "400 body, or bodyBase64: not both"},
		{"dead.edit", `{"id":1,"setHeaders":{"Nats-Rollup":["all"]}}`, "400 header Nats-Rollup"},
		{"dead.edit", `{"id":9,"body":"x"}`, "404 no such dead letter: 9"},
		{"dead.replay", `{}`, "400 which dead letters?"},
		{"dead.replay", `{"ids":[1],"all":true}`, "400 ids, or fields that choose: not both"},
		{"dead.replay", `{"all":true,"owner":"a"}`, "400 all, or fields that choose: not both"},
		{"dead.replay", `{"all":true,"rate":-1}`, "400 rate is -1"},
		{"dead.replay", `{"all":true,"to":"a/b"}`, "400 to: worker"},
		{"dead.replay", `{"all":true,"force":1}`, `400 field "force" is a JSON number: it is true or false`},
		{"dead.purge", `{"limit":3}`, "400 which dead letters?"},
		{"dead.purge", `{"all":true,"force":true}`, `400 unknown field "force": a request may have ids, all, owner`},
		{"dead.replays", `{"state":"x"}`, `400 state "x": it is one of`},
		{"dead.replays", `{"worker":"a/b","owner":"c"}`, `400 worker "a/b" is of owner a, and not of c`},
		{"dead.replays", `{"limit":10001}`, "400 limit is 10001"},
		{"dead.job", `{"job":"x"}`, `400 job "x": it is what dead.replay, dead.purge and events.purge answer as job`},
		{"dead.job", `{"job":"a.>.1"}`, `400 job`},
		{"dead.cancel", `{"job":"nobody.1"}`, "404 job nobody.1: its process has ended"},
		{"dead.job", `{"job":"` + h.id() + `.7"}`, "404 job"},
		{"drain", `{}`, "400 which process?"},
		{"drain", `{"all":true,"node":"x"}`, "400 which process?"},
		{"workers.list", `{"owner":"*"}`, `400 owner "*"`},
		{"workers.find", `{"owner":"*"}`, `400 owner "*"`},
		{"workers.find", `{"limit":-1}`, "400 limit is -1"},
		{"owners.find", `{"limit":1001}`, "400 limit is 1001"},
		{"dead.counts", `{"reason":"x"}`, "400 reason"},
		{"dead.counts", `{"limit":1001}`, "400 limit is 1001"},
		{"workers.versions", `{"worker":"a"}`, `400 worker "a": write it as OWNER/WORKER`},
		{"workers.versions", `{"worker":"a/b"}`, "404 "},
		{"owners.get", `{}`, `400 owner ""`},
		{"owners.set", `{"owner":"a"}`, "400 policy is missing"},
		{"owners.set", `{"owner":"a","policy":{"weigth":1}}`, `400 unknown field "weigth": a request may have weight, maxRunning`},
		{"owners.set", `{"owner":"a","policy":{"weight":1000}}`, "400 policy: weight is 1000: it is 1 to 100"},
	} {
		_, failure := h.control(c[0], c[1])
		require.Contains(t, failure, c[2], "%s %s", c[0], c[1])
	}
	require.Len(t, h.ask("dead.list", "")["letters"], 1, "nothing of that did anything")
}

func TestControlDeadLetters(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	second := openFleet(t, withToken, func(c *config.Config) { c.NatsURL = h.fleet.URL() })
	h.lay(5)
	page := h.ask("dead.list", `{"limit":3,"owner":"acme"}`)
	require.Len(t, page["letters"], 3)
	require.EqualValues(t, 3, page["next"])
	page = h.ask("dead.list", `{"limit":3,"owner":"acme","after":3}`)
	require.Len(t, page["letters"], 2)
	require.NotContains(t, page, "next")
	page = h.ask("dead.list", `{"limit":3,"newest":true}`)
	require.Equal(t, []any{5.0, 3.0, 3.0}, []any{page["letters"].([]any)[0].(map[string]any)["id"], page["next"],
		page["scanned"]})
	page = h.ask("dead.list", `{"limit":3,"newest":true,"before":3}`)
	require.Len(t, page["letters"], 2)
	require.NotContains(t, page, "next")
	require.Len(t, h.ask("dead.list", `{"text":"LETTER 4"}`)["letters"], 1)
	counts := h.ask("dead.counts", "")
	require.Equal(t,
		[]any{5.0, []any{map[string]any{"owner": "acme", "worker": "gone", "kind": "task", "reason": "no-worker",
			"count": 5.0}}}, []any{counts["total"], counts["counts"]})
	require.NotEmpty(t, counts["at"])
	require.EqualValues(t, 0, h.ask("dead.counts", `{"reason":"cpu"}`)["total"])
	page = h.ask("dead.list", `{"limit":3,"owner":"acme","after":3}`)
	letter := page["letters"].([]any)[0].(map[string]any)
	require.Equal(t, []any{4.0, "letter 4", 7.0, nil}, []any{letter["id"], letter["message"], letter["bodyBytes"],
		letter["body"]})
	require.Equal(t, `{"n":1}`, h.ask("dead.show", `{"id":4}`)["body"])

	require.Equal(t, map[string]any{"id": 6.0, "was": 4.0}, h.ask("dead.edit", `{"id":4,"patch":{"n":2},"setHeaders":{"X":["y"]}}`))
	require.Equal(t, `{"n":2}`, h.ask("dead.show", `{"id":6}`)["body"])

	h.deploy("acme", "mended", `export default { task: (event) => event.payload.n }`)
	job := h.ask("dead.replay", `{"ids":[1,99,6],"to":"mended"}`)
	state := h.ended(job["job"])
	require.Equal(t, []any{"replay", "done", 3.0, 2.0, 1.0}, []any{state["does"], state["state"], state["total"],
		state["done"], state["failed"]})
	require.Equal(t, []any{map[string]any{"id": 99.0, "error": "no such dead letter: 99"}}, state["errors"])
	h.settled()
	require.Eventually(t,
		func() bool { return len(h.ask("dead.replays", `{"state":"succeeded"}`)["replays"].([]any)) == 2 }, patience,
		5*time.Millisecond)
	one := h.ask("dead.replays", `{"ids":[6],"worker":"acme/mended"}`)["replays"].([]any)[0].(map[string]any)
	require.Equal(t, []any{6.0, "e4", "succeeded"}, []any{one["id"], one["eventId"], one["state"]})
	state = h.ended(h.ask("dead.replay", `{"ids":[1,2],"to":"nobody"}`)["job"])
	require.Equal(t, []any{0.0, 2.0}, []any{state["done"], state["failed"]})
	require.Contains(t, fmt.Sprint(state["errors"]), "dead letter 2 is not replayed: no such worker: acme/nobody")

	// Any process reports the job, not only the one that has it. Each process lists only its own jobs.
	for range 10 {
		require.Equal(t, "done", second.ask("dead.job", fmt.Sprintf(`{"job":%q}`, job["job"]))["state"])
	}
	job = h.ask("dead.purge", `{"match":"letter 2","text":"\"N\":1","dryRun":true}`)
	require.EqualValues(t, 1, h.ended(job["job"])["done"])
	require.Len(t, h.ask("dead.list", "")["letters"], 3)
	job = h.ask("dead.purge", `{"all":true}`)
	require.EqualValues(t, 3, h.ended(job["job"])["done"])
	require.Empty(t, h.ask("dead.list", "")["letters"])
}

// maxJobs is control.maxJobs.
const maxJobs = 8

func TestControlJobIsCancelled(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.lay(40)
	h.deploy("acme", "mended", `export default { task() {} }`)
	job := h.ask("dead.replay", `{"all":true,"to":"mended","rate":0.05}`)["job"]
	require.Eventually(t, func() bool { return h.ask("dead.job", fmt.Sprintf(`{"job":%q}`, job))["done"] == 1.0 },
		patience, 5*time.Millisecond)
	h.ask("dead.cancel", fmt.Sprintf(`{"job":%q}`, job))
	state := h.ended(job)
	require.Equal(t, []any{"cancelled", 40.0, 1.0, 1.0}, []any{state["state"], state["total"], state["done"],
		state["last"]})
	require.Len(t, h.ask("dead.list", "")["letters"], 39)

	// A process runs this many jobs at once. They end with the process.
	for range maxJobs {
		h.ask("dead.replay", `{"all":true,"to":"mended","rate":0.001,"force":true}`)
	}
	_, failure := h.control("dead.purge", `{"all":true}`)
	require.Equal(t, fmt.Sprintf("503 this process does %d jobs already, and no more at once: try again", maxJobs), failure)
	began := time.Now()
	h.stop()
	require.Less(t, time.Since(began), patience/2)
}

func TestControlWorkersAndOwners(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	h.deploy("acme", "a", `export default { task() {} }`)
	first := h.deploy("acme", "b", `export default { fetch: () => new Response("1") }`)
	h.deploy("acme", "b", `export default { fetch: () => new Response("2") }`, `{"vars":{"SECRET":"x"}}`)
	h.deploy("globex", "a", `export default { task() {} }`)
	names := func(answer map[string]any) (list []string) {
		for _, w := range answer["workers"].([]any) {
			list = append(list, w.(map[string]any)["owner"].(string)+"/"+w.(map[string]any)["name"].(string))
		}
		return list
	}
	page := h.ask("workers.list", `{"limit":2}`)
	require.Equal(t, []string{"acme/a", "acme/b"}, names(page))
	require.Equal(t, "acme/b", page["next"])
	require.NotContains(t, fmt.Sprint(page), "SECRET:x")
	require.Equal(t, []string{"globex/a"}, names(h.ask("workers.list", `{"after":"acme/b"}`)))
	require.Equal(t, []string{"globex/a"}, names(h.ask("workers.list", `{"owner":"globex"}`)))
	versions := h.ask("workers.versions", `{"worker":"acme/b"}`)
	require.Len(t, versions["versions"], 2)
	require.Equal(t, first.Version, versions["versions"].([]any)[0].(map[string]any)["version"])
	require.Regexp(t, "^2-", versions["active"])

	require.Equal(t, map[string]any{"owner": "acme", "policy": map[string]any{}}, h.ask("owners.get", `{"owner":"acme"}`))
	h.ask("owners.set", `{"owner":"acme","policy":{"weight":2,"maxRunning":20}}`)
	require.Equal(t, map[string]any{"weight": 3.0, "maxRunning": 20.0},
		h.ask("owners.set", `{"owner":"acme","policy":{"weight":3}}`)["policy"], "what is not named stays")
	require.Equal(t, map[string]any{"acme": map[string]any{"weight": 3.0, "maxRunning": 20.0}},
		h.ask("owners.list", "")["owners"])
	h.ask("owners.rm", `{"owner":"acme"}`)
	require.Empty(t, h.ask("owners.list", "")["owners"])

	h.lay(2)
	stats := h.ask("stats", "")
	require.EqualValues(t, 2, stats["dead"].(map[string]any)["messages"])
	for _, stream := range []string{"events", "parked"} {
		require.EqualValues(t, 0, stats[stream].(map[string]any)["messages"], stream)
		require.NotContains(t, stats[stream], "oldest", stream)
	}
	require.Equal(t, inventory.Node(), stats["node"])
}

func TestControlDrains(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	url := h.fleet.URL()
	nc, err := natstest.Dial(url)
	require.NoError(t, err)
	defer nc.Close()
	m := nats.NewMsg("pinwheel.control.drain")
	m.Data = []byte(`{"node":"elsewhere/1"}`)
	m.Header.Set("Authorization", "Bearer "+h.fleet.Config().ControlToken)
	_, err = nc.RequestMsg(m, 100*time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout, "those that are not meant say nothing")
	require.True(t, h.fleet.Stats().Consumer.Ready)
	answer := h.ask("drain", fmt.Sprintf(`{"node":%q}`, inventory.Node()))
	require.Equal(t, []any{inventory.Node(), true}, []any{answer["node"], answer["draining"]})
	require.Eventually(t, func() bool { return !h.fleet.Stats().Consumer.Ready }, patience, 5*time.Millisecond)
	h.stop() // it has ended by itself, without an error
}
