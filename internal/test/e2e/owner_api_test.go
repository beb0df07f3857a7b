package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// layFor stores a dead letter of owner/gone, and returns its id.
func (h *testFleet) layFor(owner string) uint64 {
	h.t.Helper()
	s := events.Subjects(events.DefaultPrefix)
	d := &events.DeadLetter{
		Owner: owner, Worker: "gone", Kind: "task", EventID: "e", Failure: *events.NewFailure(events.ReasonNoWorker,
			"secret of "+owner, ""),
		Attempts: 1, FirstAt: time.Now(), At: time.Now(), Stream: events.StreamEvents,
		StreamSeq: uint64(time.Now().UnixNano()), Body: []byte(`{"n":1}`),
	}
	ack, err := h.js.PublishMsg(h.t.Context(), &nats.Msg{Subject: s.DeadLetter(d, d.Failure.Reason),
		Header: nats.Header(d.Encode()), Data: d.Body})
	require.NoError(h.t, err)
	return ack.Sequence
}

// askAsOwner asks to the owner API, again while it is asked too often. It returns the answer as text, or its error as
// "CODE text".
func askAsOwner(t *testing.T, nc *nats.Conn, owner, name, body string) (answer, failure string) {
	t.Helper()
	var r *nats.Msg
	require.Eventually(t, func() bool {
		var err error
		r, err = nc.Request("pinwheel.owner."+owner+"."+name, []byte(body), patience)
		return err != nil || r.Header.Get(micro.ErrorCodeHeader) != "429" &&
			!strings.Contains(r.Header.Get(micro.ErrorHeader), "requests under way")
	}, patience, 20*time.Millisecond)
	require.NotNil(t, r, name)
	if code := r.Header.Get(micro.ErrorCodeHeader); code != "" {
		return "", code + " " + r.Header.Get(micro.ErrorHeader)
	}
	return string(r.Data), ""
}

// ownerNames are the endpoints that are answered by the owner API.
func (h *testFleet) ownerNames() (names []string) {
	h.t.Helper()
	for _, e := range ask[micro.Info](h, "$SRV.INFO.pinwheel", 1)[0].Endpoints {
		if name, ok := strings.CutPrefix(e.Subject, "pinwheel.owner.*."); ok {
			names = append(names, name)
		}
	}
	return names
}

const doorWorker = `export default { task(event) { console.log("ran for " + event.id); }, fetch() { return new Response("ok"); }, scheduled() {} }`

var doorManifest = `{"schedules":[{"name":"night","cron":"0 3 * * *"}]}`

// TestOwnerAPI is what an owner can do with its own NATS user, and what it cannot: see and name what is another's.
func TestOwnerAPI(t *testing.T) {
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
			for _, owner := range []string{"acme", "beta"} {
				h.deploy(owner, "w", doorWorker, doorManifest)
				h.deploy(owner, "gone", doorWorker, "{}")
			}
			mine, foreign := h.layFor("acme"), h.layFor("beta")
			h.ownAPI(t, acme, mine)
			h.foreignAPI(t, acme, beta, foreign)
			_, failure := askAsOwner(t, beta, "beta", "dead.show", fmt.Sprintf(`{"id":%d}`, foreign))
			require.Empty(t, failure, "beta's letter is as it was")
		})
	}
}

// ownAPI does everything that an owner may do with its own.
func (h *testFleet) ownAPI(t *testing.T, acme *nats.Conn, mine uint64) {
	for _, c := range [][3]string{
		{"workers.list", "", `"owner":"acme","name":"gone"`},
		{"workers.list", `{"owner":"acme"}`, `"name":"w"`},
		{"workers.find", "", `"total":2`},
		{"workers.find", `{"match":"ACME/G"}`, `"owner":"acme","name":"gone"`},
		{"workers.versions", `{"worker":"w"}`, `"worker":"acme/w"`},
		{"workers.versions", `{"worker":"acme/w"}`, `"active":"1-`},
		{"workers.flow", "", `"owner":"acme","queued":0,"running":0,"ended":0`},
		{"workers.flow", `{"worker":"w"}`, `"workers":[{"worker":"acme/w","state":"offline"`},
		{"storage", "", `{}`},
		{"workers.active", `{"worker":"acme/w"}`, `"version":"1-`},
		{"versions.list", `{"worker":"w"}`, `"percent":100`},
		{"deployments.alias", `{"worker":"w","alias":"next","version":"1"}`, `"aliases":{"next":"1-`},
		{"deployments.promote", `{"worker":"acme/w","version":"next","message":"m"}`, `"changed":false`},
		{"deployments.list", `{"worker":"w"}`, `"number":2`},
		{"secrets.keys", "", `"recipients":[]`},
		{"secrets.list", "", `"secrets":[]`},
		{"schedules.list", "", `"owner":"acme","worker":"w","name":"night"`},
		{"schedules.next", `{"worker":"acme/w","name":"night","count":2}`, `"ticks":["`},
		{"schedules.pause", `{"worker":"w","name":"night"}`, `"paused":true`},
		{"schedules.resume", `{"worker":"w","name":"night"}`, `"paused":false`},
		{"schedules.waiting", "", `"events":[]`},
		{"schedules.cancel", `{"worker":"w","id":"x"}`, `"cancelled":0`},
		{"pause", `{"worker":"w","skipTicks":true}`, `"worker":"w","since":"`},
		{"pause", "", `{"owner":"acme","since":"`},
		{"paused.list", `{"owner":"acme"}`, `"skipTicks":true,"byOwner":true}]`},
		{"paused.active", `{"worker":"acme/w"}`, `"running":0`},
		{"resume", "", `"worker":"w"`},
		{"resume", `{"worker":"w"}`, `"paused":[]`},
		{"events.list", `{"worker":"w"}`, `{"events":[]}`},
		{"events.held", "", `"events":[],"all":0`},
		{"events.cancel", `{"worker":"w","all":true}`, `{"events":[],"cancelled":0}`},
		{"events.purge", `{"place":"parked","dryRun":true}`, `"does":"purge-events"`},
		{"dead.list", "", `secret of acme`},
		{"dead.list", `{"worker":"acme/gone"}`, `secret of acme`},
		{"dead.counts", "", `{"total":1,"counts":[{"owner":"acme","worker":"gone","kind":"task","reason":"no-worker","count":1}]`},
		{"dead.counts", `{"worker":"acme/w"}`, `{"total":0,"counts":[]`},
		{"dead.show", fmt.Sprintf(`{"id":%d}`, mine), `secret of acme`},
		{"dead.body", fmt.Sprintf(`{"id":%d,"from":2}`, mine), `{"bytes":7,"part":"biI6MX0="}`},
		{"dead.replays", "", `"replays":[]`},
		{"kv.put", `{"namespace":"n","key":"k","value":"bWluZQ==","metadata":{"n":"<"}}`, `{"bytes":4}`},
		{"kv.get", `{"owner":"acme","namespace":"n","key":"k","from":2}`, `"metadata":{"n":"<"},"part":"bmU="}`},
		{"kv.list", `{"namespace":"n","prefix":"k"}`, `{"keys":[{"key":"k","metadata":{"n":"<"}}]}`},
		{"kv.rm", `{"namespace":"n","key":"k"}`, `{"bytes":4}`},
		{"objects.put", `{"bucket":"b","key":"k","contentType":"text/plain"}`, `{"bytes":0}`},
		{"objects.get", `{"bucket":"b","key":"k","data":true}`, `"contentType":"text/plain"`},
		{"objects.list", `{"bucket":"b"}`, `{"objects":[{"key":"k","size":0,`},
		{"objects.rm", `{"bucket":"b","key":"k"}`, `{"bytes":0}`},
		{"dead.import", `{"body":{}}`, `{"stored":0,"there":0}`},
		{"dead.jobs", "", `"jobs":[`},
	} {
		answer, failure := askAsOwner(t, acme, "acme", c[0], c[1])
		require.Empty(t, failure, "%s %s", c[0], c[1])
		require.Contains(t, answer, c[2], "%s %s", c[0], c[1])
		require.NotContains(t, answer, "beta", "%s %s", c[0], c[1])
	}
	feed, err := acme.SubscribeSync("pinwheel.feed.acme." + tailID)
	require.NoError(t, err)
	require.NoError(t, acme.Flush())
	_, failure := askAsOwner(t, acme, "acme", "tail", fmt.Sprintf(`{"id":%q}`, tailID))
	require.Empty(t, failure)
	answer, failure := askAsOwner(t, acme, "acme", "dead.edit", fmt.Sprintf(`{"id":%d,"body":"{}"}`, mine))
	require.Empty(t, failure)
	require.Contains(t, answer, fmt.Sprintf(`"was":%d`, mine))
	answer, failure = askAsOwner(t, acme, "acme", "dead.replay", `{"all":true}`)
	require.Empty(t, failure)
	var job struct{ Job, Owner, State string }
	require.NoError(t, json.Unmarshal([]byte(answer), &job))
	require.Equal(t, "acme", job.Owner)
	require.Eventually(t, func() bool {
		answer, failure = askAsOwner(t, acme, "acme", "dead.job", fmt.Sprintf(`{"job":%q}`, job.Job))
		return failure == "" && strings.Contains(answer, `"state":"done"`)
	}, patience, 5*time.Millisecond)
	require.Contains(t, answer, `"done":1,"failed":0`, "only its own letter")
	answer, _ = askAsOwner(t, acme, "acme", "dead.jobs", "")
	require.Contains(t, answer, job.Job)
	entries(t, feed, func(list []tail.Entry) bool {
		return len(list) > 0 && list[len(list)-1].Text == "ran for e"
	})
}

// foreignAPI tries to see and to name what is beta's, as acme.
func (h *testFleet) foreignAPI(t *testing.T, acme, beta *nats.Conn, foreign uint64) {
	h2 := h.layFor("acme")
	bodies := map[string][][2]string{ // endpoint → bodies, and what must be in the refusal
		"workers.list": {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"}, {`{"owner":">"}`, "403"}},
		"workers.find": {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"},
			{`{"match":"beta","only":"beta"}`, "400 unknown field"}},
		"dead.counts": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/gone"}`, "403"}, {`{"owner":"~"}`, "403"},
			{`{"owner":"*"}`, "403"}, {`{"kind":"*"}`, "400 kind"}},
		"workers.versions": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"*/w"}`, "403"}, {`{"worker":"/w"}`, "403"},
			{`{}`, "400"}},
		"workers.active": {{`{"worker":"beta/w"}`, "403"}},
		"workers.flow": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"owner":"*"}`, "403"},
			{`{"worker":"*/w"}`, "403"}, {`{"worker":"*"}`, "400"}},
		"storage": {{`{"owner":"beta"}`, "400"}},
		"pause": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"owner":"*"}`, "403"},
			{`{"worker":"*"}`, "400"}, {`{"worker":"none"}`, "404"}, {`{"worker":"w","since":"x"}`, "400"}},
		"resume": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"worker":"*"}`, "400"}},
		"events.list": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"owner":">"}`, "403"},
			{`{"worker":"*"}`, "400"}, {`{"after":"lane:x"}`, "400 after"}},
		"events.show": {{`{"owner":"beta","id":"1"}`, "403"}, {`{"worker":"beta/w","id":"1"}`, "403"},
			{`{}`, "400 id"}, {`{"id":"lane:1"}`, "404"}, {`{"id":"due:1"}`, "404"}, {`{"id":"parked:1"}`, "404"},
			{`{"id":"1"}`, "404"},
			{`{"id":"held:1"}`, "404"}, {`{"id":"*"}`, "404"}},
		"events.held": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"worker":"*"}`, "400"}},
		"events.cancel": {{`{"owner":"beta","all":true}`, "403"}, {`{"worker":"beta/w","all":true}`, "403"},
			{`{}`, "400 which events"}, {`{"events":["lane:1"]}`, "404"}, {`{"owner":"*","all":true}`, "403"}},
		"events.purge": {{`{"owner":"beta","all":true}`, "403"}, {`{"worker":"beta/w","all":true}`, "403"},
			{`{}`, "400 which events"}, {`{"worker":"*","all":true}`, "400"}},
		"paused.list":   {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"}},
		"paused.active": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"worker":"*"}`, "400"}},
		"versions.list": {{`{"worker":"beta/w"}`, "403"}},
		"versions.source": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"w","version":"9"}`, "404"},
			{`{"worker":"w","file":"../../beta/w.js"}`, "404"}, {`{"worker":"w","line":-1}`, "400 line"}},
		"versions.show": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"w","version":"9"}`, "404"},
			{`{"worker":"w","code":true,"from":-1}`, "400 from"}, {`{"worker":"w","code":true,"from":9999999}`, "400 from"}},
		"deployments.list": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"*/w"}`, "403"}},
		"deployments.promote": {
			{`{"worker":"beta/w","version":"1"}`, "403"}, {`{"worker":"w","version":"9"}`, "404"},
			{`{"worker":"w","version":"1","percent":1000}`, "409"},
			{`{"worker":"w","version":"1","percent":50}`, "409"},
		},
		"deployments.rollback": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"w","version":"../1"}`, "404"},
			{`{"worker":"w"}`, "409"}},
		"deployments.alias": {{`{"worker":"beta/w","alias":"x","version":"1"}`, "403"}, {`{"worker":"w","alias":"1","version":"1"}`,
			"409"}},
		"workers.rm": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"*/w"}`, "403"}, {`{"worker":"none"}`, "404"},
			{`{}`, "400"}},
		"versions.preview": {{`{"worker":"beta/w","version":"1"}`, "403"}, {`{"worker":"w","version":"9"}`, "404"},
			{`{"worker":"w","version":"1","for":"1s"}`, "400 for"}},
		"workers.reset": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"*/w"}`, "403"}, {`{"worker":"none"}`, "404"}},
		"versions.deploy": {{`{"worker":"beta/w"}`, "403"}, {`{"worker":"*/w"}`, "403"},
			{`{"owner":"beta","worker":"w"}`, "400"}, {`{"worker":"w","bundle":{"id":"beta.x"}}`, "400 bundle.id"}},
		"files.missing": {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"}, {`{"hashes":["beta.x"]}`, "400 hashes"},
			{`{"door":false}`, "400 unknown field"}},
		"files.store": {{`{"owner":"beta"}`, "403"}, {`{"owner":">"}`, "403"}, {`{"id":"beta.x"}`, "400 id"},
			{`{"id":"x"}`, "400 files"}},
		"secrets.keys": {{`{"owner":"beta"}`, "400"}},
		"secrets.list": {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"}},
		"secrets.set":  {{`{"owner":"beta","name":"A","sealed":"eA=="}`, "403"}, {`{"name":"A","sealed":"eA==","worker":"beta/w"}`, "400"}},
		"secrets.rm":   {{`{"owner":"beta","name":"A"}`, "403"}, {`{"name":"A"}`, "404"}},
		"tail": {{`{"owner":"beta","id":"0123456789abcdef"}`, "403"}, {`{"worker":"beta/w","id":"0123456789abcdef"}`, "403"},
			{`{"id":"beta.0123456789abcdef"}`, "400"}},
		"schedules.list": {{`{"owner":"beta"}`, "403"}},
		"schedules.next": {{`{"worker":"beta/w","name":"night"}`, "403"}},
		"schedules.waiting": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"},
			{`{"owner":"acme","worker":"beta/w"}`, "403"}},
		"schedules.cancel": {{`{"worker":"beta/w","id":"x"}`, "403"}},
		"schedules.pause":  {{`{"worker":"beta/w","name":"night"}`, "403"}},
		"schedules.resume": {{`{"worker":"beta/w","name":"night"}`, "403"}},
		"dead.list": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/gone"}`, "403"}, {`{"owner":"~"}`, "403"},
			{`{"match":"(\\pL{1,30}x){1,30}"}`, "400 match"}},
		"dead.show": {{fmt.Sprintf(`{"id":%d}`, foreign), "404 no such dead letter"},
			{`{"id":999999}`, "404 no such dead letter"}},
		"dead.edit": {{fmt.Sprintf(`{"id":%d,"body":"x"}`, foreign), "404 no such dead letter"}},
		"dead.replay": {{`{}`, "400 which dead letters?"}, {`{"owner":"beta"}`, "403"},
			{`{"all":true,"owner":"beta"}`, "400"}, {`{"worker":"beta/gone"}`, "403"},
			{fmt.Sprintf(`{"ids":[%d],"to":"beta/w"}`, h2), "400 to"}},
		"dead.replays": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/gone"}`, "403"}},
		"dead.purge": {{`{}`, "400 which dead letters?"}, {`{"limit":3}`, "400 which dead letters?"},
			{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/gone"}`, "403"}},
		"dead.job":    {{`{"job":"JOB"}`, "404 job"}, {`{"job":"x"}`, "400 job"}},
		"dead.cancel": {{`{"job":"JOB"}`, "404 job"}},
		"dead.jobs":   {{`{"owner":"beta"}`, "400"}, {`{"only":"beta"}`, "400"}},
		"dead.body": {{fmt.Sprintf(`{"id":%d}`, foreign), "404 no such dead letter"}, {fmt.Sprintf(`{"id":%d,"from":99}`, h2),
			"400 from"}, {`{"id":1,"owner":"beta"}`, "400 unknown field"}},
		"dead.import": {{`{"owner":"beta"}`, "403"}, {`{"owner":"*"}`, "403"}, {`{"body":{"id":"beta.x","parts":1,"bytes":1}}`,
			"400 body.id"}, {`{"body":{"id":"x","parts":1,"bytes":99999999}}`, "400 body.bytes"},
			{`{"body":{"id":"x","parts":1,"bytes":1}}`, "400 part 0 of 1"}},
		"kv.list": {{`{"owner":"beta","namespace":"n"}`, "403"}, {`{"owner":">","namespace":"n"}`, "403"},
			{`{"namespace":"*"}`, "400 namespace"}, {`{"namespace":"n.beta"}`, "400 namespace"},
			{`{"namespace":"n","after":"x"}`, "400 Invalid cursor"}, {`{"namespace":"n","limit":-1}`, "400 limit"}},
		"kv.get": {{`{"owner":"beta","namespace":"n","key":"k"}`, "403"}, {`{"namespace":"../n","key":"k"}`, "400 namespace"},
			{`{"namespace":"n","key":".."}`, "400"}, {`{"namespace":"n","key":"*"}`, "404"},
			{`{"namespace":"n","key":">"}`, "404"}, {`{"namespace":"=cursors","key":"k"}`, "400 namespace"}},
		"kv.put": {{`{"owner":"beta","namespace":"n","key":"k"}`, "403"}, {`{"namespace":"n","key":"k","ttl":-1}`, "400 ttl"},
			{`{"namespace":"n","key":"k","ttl":9223372036854775807}`, "400 ttl"}, {`{"namespace":"n","key":""}`, "400"},
			{`{"namespace":"n","key":"k","value":"","body":{}}`, "400 value, or body"}, {`{"namespace":"n","key":"k","body":{"id":"*","parts":1,"bytes":1}}`,
				"400 body.id"}, {`{"namespace":"n","key":"k","body":{"id":"x","parts":1,"bytes":524289}}`, "400 body.bytes"}},
		"kv.rm": {{`{"owner":"beta","namespace":"n","key":"k"}`, "403"}, {`{"namespace":"n","key":"*"}`, "404"},
			{`{"namespace":"n","key":"none"}`, "404"}},
		"objects.list": {{`{"owner":"beta","bucket":"b"}`, "403"}, {`{"bucket":"*"}`, "400 bucket"},
			{`{"bucket":"b","after":"x"}`, "400 Invalid cursor"}},
		"objects.get": {{`{"owner":"beta","bucket":"b","key":"k"}`, "403"}, {`{"bucket":"../b","key":"k"}`, "400 bucket"},
			{`{"bucket":"b","key":"../../beta/b/k"}`, "404"}, {`{"bucket":"b","key":"*"}`, "404"}},
		"objects.put": {{`{"owner":"beta","bucket":"b","key":"k"}`, "403"}, {`{"bucket":"b/c","key":"k"}`, "400 bucket"},
			{`{"bucket":"b","key":"k","body":{"id":">","parts":1,"bytes":1}}`, "400 body.id"}, {`{"bucket":"b","key":"k","body":{"id":"x","parts":1,"bytes":26214401}}`,
				"400 body.bytes"}, {`{"bucket":"b","key":"k","body":{"id":"x","parts":-1}}`, "400 body.parts"}},
		"objects.rm": {{`{"owner":"beta","bucket":"b","key":"k"}`, "403"}, {`{"bucket":"b","key":">"}`, "404"}},
		"runs.list": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"owner":">"}`, "403"},
			{`{"worker":"*"}`, "400"}, {`{"version":"*"}`, "400 version"}},
		"runs.show":      {{`{"id":1}`, "404"}, {`{}`, "400 id"}},
		"sources.list":   {{`{"owner":"beta"}`, "403"}, {`{"owner":">"}`, "403"}, {`{"owner":"*"}`, "403"}},
		"sources.active": {{`{"owner":"beta"}`, "403"}, {`{"owner":">"}`, "403"}, {`{"limit":-1}`, "400"}},
		"sources.reset": {{`{"worker":"beta/w","to":"all"}`, "403"}, {`{"worker":"*","to":"all"}`, "400"},
			{`{"worker":"w","to":"all"}`, "404"}, {`{"worker":"w","to":"yesterday"}`, "400 to"}},
		"usage.get": {{`{"owner":"beta"}`, "403"}, {`{"worker":"beta/w"}`, "403"}, {`{"owner":"*"}`, "403"},
			{`{"from":"x"}`, "400 from"}},
		"audit.list": {{`{"owner":"beta"}`, "403"}, {`{"owner":"~"}`, "403"}, {`{"owner":"*"}`, "403"}},
	}
	names := h.ownerNames()
	for name := range bodies {
		require.Contains(t, names, name)
	}
	begun, failure := askAsOwner(t, beta, "beta", "dead.replay", `{"ids":[999999]}`)
	require.Empty(t, failure)
	var betas struct{ Job string }
	require.NoError(t, json.Unmarshal([]byte(begun), &betas))
	for _, name := range names {
		list, ok := bodies[name]
		require.True(t, ok, "%s: an endpoint of the owner API that this test does not try", name)
		for _, c := range list {
			body := strings.ReplaceAll(c[0], "JOB", betas.Job)
			_, failure := askAsOwner(t, acme, "acme", name, body)
			require.True(t, strings.HasPrefix(failure, c[1]), "%s %s: %q is not %s", name, body, failure, c[1])
			require.NotContains(t, failure, "secret of")
		}
	}
	// Ids of others in a list are not found, one by one, and the job says no more than that.
	for _, name := range []string{"dead.replay", "dead.purge"} {
		answer, failure := askAsOwner(t, acme, "acme", name, fmt.Sprintf(`{"ids":[%d]}`, foreign))
		require.Empty(t, failure)
		var job struct{ Job string }
		require.NoError(t, json.Unmarshal([]byte(answer), &job))
		require.Eventually(t, func() bool {
			answer, _ = askAsOwner(t, acme, "acme", "dead.job", fmt.Sprintf(`{"job":%q}`, job.Job))
			return strings.Contains(answer, `"state":"done"`)
		}, patience, 5*time.Millisecond)
		require.Contains(t, answer, `"done":0,"failed":1`)
		require.Contains(t, answer, fmt.Sprintf("no such dead letter: %d", foreign))
	}
	answer, _ := askAsOwner(t, acme, "acme", "dead.jobs", "")
	require.NotContains(t, answer, betas.Job)

	// Other owners, wildcards, odd owners, reply subjects that are not acme's, and none: nothing is answered or done.
	before := len(h.dead())
	spy, err := h.nc.SubscribeSync("_INBOX.beta.>")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	inbox := acme.NewInbox()
	answers, err := acme.SubscribeSync(inbox)
	require.NoError(t, err)
	require.NoError(t, acme.Flush())
	for _, name := range names {
		for _, owner := range []string{"beta", "*", ">", "~", "acme.beta", "Acme"} {
			require.NoError(t, acme.PublishRequest("pinwheel.owner."+owner+"."+name, inbox, []byte(`{"all":true}`)))
		}
		for _, to := range []string{"_INBOX.beta.stolen", "_INBOX.stolen", "pinwheel.owner.beta.dead.purge",
			"pinwheel.events.task.beta.w", "$JS.API.STREAM.PURGE.PINWHEEL_DEAD", "anything"} {
			require.NoError(t, acme.PublishRequest("pinwheel.owner.acme."+name, to, []byte(`{"?":0}`)))
		}
		require.NoError(t, acme.Publish("pinwheel.owner.acme."+name, []byte(`{"all":true}`)))
		for _, control := range []string{"pinwheel.control.", "pinwheel.control.job."} {
			require.NoError(t, acme.PublishRequest(control+name, inbox, nil))
		}
	}
	for _, name := range []string{"owners.set", "owners.rm", "owners.list", "owners.find", "owners.get", "drain", "pool",
		"stats", "settings", "job", "dead"} {
		require.NoError(t, acme.PublishRequest("pinwheel.owner.acme."+name, inbox, []byte(`{"owner":"acme","all":true}`)))
	}
	require.NoError(t, acme.Flush())
	require.Eventually(t, func() bool { // after so many requests of acme some are not answered
		r, err := acme.Request("pinwheel.owner.acme.workers.list", nil, time.Second)
		return err == nil && r.Header.Get(micro.ErrorCodeHeader) == ""
	}, patience, 20*time.Millisecond)
	require.NoError(t, h.nc.Flush())
	for n, _, _ := answers.Pending(); n > 0; n-- {
		m, err := answers.NextMsg(patience)
		require.ErrorIs(t, err, nats.ErrNoResponders, "nothing else: %v", m)
	}
	n, _, _ := spy.Pending()
	require.Zero(t, n)
	require.Len(t, h.dead(), before)
}

// The owner API of one prefix is not that of another.
func TestOwnerAPIsOfTwoPrefixes(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "w", doorWorker)
	_, err := h.nc.Request("other.owner.acme.workers.list", nil, patience)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	answer, failure := askAsOwner(t, h.nc, "acme", "workers.list", "")
	require.Empty(t, failure)
	require.Contains(t, answer, `"name":"w"`)
}

// What JetStream answers to a publish is no request, also where an owner has it sent to another's API.
func TestPubAcksAreNoRequests(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	h.deploy("acme", "w", `export default { task() {} }`)
	h.layFor("beta")
	for _, name := range h.ownerNames() {
		require.NoError(t, h.nc.PublishRequest("pinwheel.events.task.acme.w", "pinwheel.owner.beta."+name, nil))
	}
	h.settled()
	require.NoError(t, h.nc.Flush())
	_, failure := askAsOwner(t, h.nc, "beta", "dead.list", "")
	require.Empty(t, failure)
	require.Len(t, h.dead(), 1)
}

// Requests of an owner take neither the slots of operators nor those of other owners.
func TestRequestsOfOwnersAreLimited(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Control = config.ControlByPermissions })
	inbox := h.nc.NewInbox()
	answers := make(chan *nats.Msg, 6000)
	sub, err := h.nc.ChanSubscribe(inbox, answers)
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	defer func() { _ = sub.Unsubscribe() }()
	const n = 5000
	for range n {
		require.NoError(t, h.nc.PublishRequest("pinwheel.owner.acme.workers.list", inbox, nil))
	}
	_, failure := askAsOwner(t, h.nc, "beta", "workers.list", "")
	require.Empty(t, failure, "another owner is answered")
	h.ask("workers.list", "")
	count := func(result string) int { return int(h.metric("pinwheel_owner_requests_total", "result", result)) }
	require.Eventually(t, func() bool { return count("handled")+count("refused")+count("dropped") >= n+1 }, patience,
		5*time.Millisecond)
	codes := map[string]int{}
	for range count("handled") - 1 + count("refused") {
		codes[(<-answers).Header.Get(micro.ErrorCodeHeader)]++
	}
	require.Positive(t, codes[""], "%v", codes)
	require.Positive(t, codes["429"], "%v", codes)
	require.Equal(t, n, codes[""]+codes["429"]+codes["503"]+count("dropped"), "%v", codes)
	require.Less(t, len(answers), 1)

	// So do jobs: an owner has two at once.
	for range 3 {
		h.layFor("acme")
	}
	h.deploy("acme", "gone", `export default { task() {} }`)
	var last string
	require.Eventually(t, func() bool {
		_, last = askAsOwner(t, h.nc, "acme", "dead.replay", `{"all":true,"rate":0.01}`)
		return strings.HasPrefix(last, "503 this process does 2 jobs of owner acme")
	}, patience, time.Second, last)
	_, failure = h.control("dead.purge", `{"all":true,"dryRun":true}`)
	require.Empty(t, failure)
}

// A fleet of this release with the permissions of an earlier one has no owner API. Its control endpoints answer, and
// the doctor says what is missing.
func TestWithoutThePermissionForTheOwnerAPI(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"FLEET", "BACKUP", "ACME", "BETA"} { // as natstest does
		require.NoError(t, os.Setenv(name+"_PASSWORD", strings.ToLower(name)+"-secret"))
	}
	o, err := server.ProcessConfigFile("../../../deploy/nats/users.conf")
	require.NoError(t, err)
	for _, u := range o.Users {
		u.Permissions.Subscribe.Allow = slices.DeleteFunc(u.Permissions.Subscribe.Allow,
			func(s string) bool { return s == "pinwheel.owner.>" })
	}
	o.HTTPPort = 0
	h := openSecured(t, natstest.StartOptions(t, o), "_INBOX.{owner}.")
	h.deploy("acme", "w", doorWorker)
	require.Len(t, h.ask("workers.list", "")["workers"], 1)
	_, err = h.nc.Request("pinwheel.owner.acme.workers.list", nil, patience)
	require.ErrorIs(t, err, nats.ErrNoResponders)
	_, out := runDoctor(t, h.fleet.Config())
	require.Contains(t, out, "user fleet of account $G may not subscribe to pinwheel.owner.>")
}
