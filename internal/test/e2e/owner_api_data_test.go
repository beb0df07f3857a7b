package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// inConfigurations runs a test with the users acme and beta of each shipped configuration.
func inConfigurations(t *testing.T, test func(t *testing.T, h *testFleet, acme, beta *nats.Conn)) {
	for file, prefixes := range map[string][]string{"users.conf": {"_INBOX.{owner}."},
		"accounts.conf": {"_INBOX.{owner}.", "_R_."}} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartConfigured(t, "../../../deploy/nats/"+file)
			test(t, openSecured(t, url, prefixes...), as(t, url, "acme"), as(t, url, "beta"))
		})
	}
}

// storedBody stores data in parts, as a body of owner.
func storedBody(t *testing.T, nc *nats.Conn, owner, data string) control.UploadedBody {
	t.Helper()
	c, err := client.New(nc)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	b, err := c.Store(t.Context(), owner, strings.NewReader(data))
	require.NoError(t, err)
	return control.UploadedBody{ID: b.ID, Parts: b.Parts, Bytes: len(data)}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// done asks to the owner API, and expects that it is done.
func done[Answer any](t *testing.T, nc *nats.Conn, owner, name string, request any) (a Answer) {
	t.Helper()
	answer, failure := askAsOwner(t, nc, owner, name, jsonOf(t, request))
	require.Empty(t, failure, name)
	require.NoError(t, json.Unmarshal([]byte(answer), &a))
	return a
}

// What an owner names its keys and objects reaches nothing of another owner: names that look like paths, subjects and
// wildcards are only names.
func TestOwnersDataIsItsOwn(t *testing.T) {
	t.Parallel()
	inConfigurations(t, testOwnersData)
}

func testOwnersData(t *testing.T, h *testFleet, acme, beta *nats.Conn) {
	type object = map[string]any
	keys := []string{"k", "*", ">", "../beta/k", "beta.n.k", "$KV.PINWHEEL_KV_beta.n.k", "a\r\nb: c", "\x00", "ü",
		strings.Repeat("/", 512)}
	for _, key := range keys {
		done[object](t, beta, "beta", "kv.put", object{"namespace": "n", "key": key, "value": []byte("beta's")})
		done[object](t, beta, "beta", "objects.put",
			object{"bucket": "b", "key": key, "body": storedBody(t, beta, "beta", "beta's")})
	}
	page := done[control.KeyList](t, beta, "beta", "kv.list", object{"namespace": "n", "limit": 2})
	require.NotEmpty(t, page.Next)
	theirs := done[control.ObjectList](t, beta, "beta", "objects.list", object{"bucket": "b", "limit": 2})
	require.NotEmpty(t, theirs.Next)

	for name, body := range map[string]string{"kv.list": `{"namespace":"n"}`, "objects.list": `{"bucket":"b"}`} {
		_, failure := askAsOwner(t, acme, "acme", name, body)
		require.True(t, strings.HasPrefix(failure, "404 acme: the owner has no"), failure)
	}
	done[object](t, acme, "acme", "kv.put", object{"namespace": "n", "key": "mine", "value": []byte("mine")})
	done[object](t, acme, "acme", "objects.put",
		object{"bucket": "b", "key": "mine", "body": storedBody(t, acme, "acme", "mine")})
	for _, key := range keys {
		for name, request := range map[string]object{
			"kv.get": {"namespace": "n", "key": key}, "kv.rm": {"namespace": "n", "key": key},
			"objects.get": {"bucket": "b", "key": key}, "objects.rm": {"bucket": "b", "key": key},
		} {
			_, failure := askAsOwner(t, acme, "acme", name, jsonOf(t, request))
			require.True(t, strings.HasPrefix(failure, "404 acme/"), "%s %q: %s", name, key, failure)
		}
	}
	require.Equal(t, "mine", done[control.KeyList](t, acme, "acme", "kv.list", object{"namespace": "n"}).Keys[0].Name)
	for name, request := range map[string]object{"kv.list": {"namespace": "n", "after": page.Next},
		"objects.list": {"bucket": "b", "after": theirs.Next}} {
		answer, failure := askAsOwner(t, acme, "acme", name, jsonOf(t, request))
		require.Contains(t, failure, "400 Invalid cursor", "%s: another owner's cursor: %s", name, answer)
	}
	for _, key := range keys { // of the same names
		done[object](t, acme, "acme", "kv.put", object{"namespace": "n", "key": key, "value": []byte("acme's")})
		done[object](t, acme, "acme", "kv.rm", object{"namespace": "n", "key": key})
		done[object](t, acme, "acme", "objects.put", object{"bucket": "b", "key": key})
		done[object](t, acme, "acme", "objects.rm", object{"bucket": "b", "key": key})
	}
	require.Len(t, done[control.KeyList](t, acme, "acme", "kv.list", object{"namespace": "n"}).Keys, 1)
	require.Len(t, done[control.ObjectList](t, acme, "acme", "objects.list", object{"bucket": "b"}).Objects, 1)

	// Parts of another owner cannot be named.
	b := storedBody(t, beta, "beta", "secret of beta")
	for name, request := range map[string]object{
		"kv.put": {"namespace": "n", "key": "stolen", "body": b}, "objects.put": {"bucket": "b", "key": "stolen", "body": b},
		"dead.import": {"body": b},
	} {
		_, failure := askAsOwner(t, acme, "acme", name, jsonOf(t, request))
		require.Contains(t, failure, "400 part 0 of 1 of body "+b.ID+" is not there", name)
	}
	done[object](t, beta, "beta", "kv.put", object{"namespace": "n", "key": "long", "body": b})
	got := done[control.StoredValue](t, beta, "beta", "kv.get", object{"namespace": "n", "key": "long"})
	require.Equal(t, "secret of beta", string(got.Part))
	_, failure := askAsOwner(t, beta, "beta", "kv.put", jsonOf(t, object{"namespace": "n", "key": "long", "body": b}))
	require.Contains(t, failure, "is not there", "the parts are removed")
	for _, key := range keys {
		require.Equal(t, "beta's",
			string(done[control.StoredValue](t, beta, "beta", "kv.get", object{"namespace": "n", "key": key}).Part), key)
		require.Equal(t, "beta's",
			string(done[control.GotObject](t, beta, "beta", "objects.get", object{"bucket": "b", "key": key, "data": true}).
				Part), key)
	}

	// One body of an owner at a time is in the memory of a process. Requests that were refused can be sent again.
	waiting := map[string]string{}
	for i := range 8 {
		waiting[fmt.Sprint(i)] = jsonOf(t, object{"bucket": "many", "key": fmt.Sprint(i),
			"body": storedBody(t, acme, "acme", strings.Repeat(fmt.Sprint(i), 1<<20))})
	}
	underWay := 0
	pace := time.NewTicker(200 * time.Millisecond) // asked more often than an owner may, nothing is answered in the end
	defer pace.Stop()
	for ; len(waiting) > 0; <-pace.C {
		inboxes := map[string]*nats.Subscription{}
		for i, request := range waiting {
			inbox := acme.NewInbox()
			var err error
			inboxes[i], err = acme.SubscribeSync(inbox)
			require.NoError(t, err)
			require.NoError(t, acme.PublishRequest("pinwheel.owner.acme.objects.put", inbox, []byte(request)))
		}
		for i, answers := range inboxes {
			m, err := answers.NextMsg(patience)
			require.NoError(t, err)
			if code := m.Header.Get("Nats-Service-Error-Code"); code == "" {
				delete(waiting, i)
			} else {
				text := m.Header.Get("Nats-Service-Error")
				require.Contains(t, []string{"503", "429"}, code, text)
				if strings.Contains(text, "owner acme has an import or an object under way in this process") {
					underWay++
				}
			}
		}
	}
	require.Positive(t, underWay)
	require.Len(t, done[control.ObjectList](t, acme, "acme", "objects.list", object{"bucket": "many"}).Objects, 8)

	// The owner's policy bounds what is stored.
	h.setPolicyOf("acme", workers.Policy{KVBytes: 1 << 20, ObjectBytes: 1 << 20})
	large := storedBody(t, acme, "acme", strings.Repeat("x", 2<<20))
	require.Eventually(t, func() bool {
		_, failure := askAsOwner(t, acme, "acme", "objects.put",
			jsonOf(t, object{"bucket": "b", "key": "large", "body": large}))
		if failure == "" { // the policy has not come yet
			large = storedBody(t, acme, "acme", strings.Repeat("x", 2<<20))
		}
		return strings.Contains(failure, "413 the owner's data would have more bytes than the owner may store (policy objectBytes)")
	}, patience, 20*time.Millisecond)
	value := bytes.Repeat([]byte("x"), 500<<10)
	require.Eventually(t, func() bool {
		for i := range 4 {
			if _, failure := askAsOwner(t, acme, "acme", "kv.put",
				jsonOf(t, object{"namespace": "n", "key": fmt.Sprint(i), "value": value})); failure != "" {
				require.Contains(t, failure, "413 the owner's data would have more bytes than the owner may store (policy kvBytes)")
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond)
}

// letterOf is a dead letter as a line of an export.
func letterLine(t *testing.T, owner string, seq uint64, change func(*events.LetterJSON)) string {
	d := &events.DeadLetter{
		Owner: owner, Worker: "gone", Kind: "task", EventID: "e", Failure: *events.NewFailure(events.ReasonNoWorker, "m", ""),
		Attempts: 1, FirstAt: time.Now(), At: time.Now(),
		Stream: "PINWHEEL_EVENTS", StreamSeq: seq, Subject: "pinwheel.stored.0.task." + owner + ".gone",
		Header: events.Header{"X-A": {"1"}}, Body: []byte("{}"),
	}
	j := d.JSON(true)
	if change != nil {
		change(j)
	}
	return jsonOf(t, j) + "\n"
}

// What an owner imports is its own, and says nothing that only the fleet may say.
func TestImportedLettersAreTheOwners(t *testing.T) {
	t.Parallel()
	inConfigurations(t, testImportedLetters)
}

func testImportedLetters(t *testing.T, h *testFleet, acme, beta *nats.Conn) {
	h.layFor("beta")
	before := len(h.dead())
	imported := func(lines string) (answer, failure string) {
		t.Helper()
		return askAsOwner(t, acme, "acme", "dead.import",
			jsonOf(t, control.ImportLetters{Body: storedBody(t, acme, "acme", lines)}))
	}
	raw := func(owner string) func(*events.LetterJSON) {
		return func(j *events.LetterJSON) {
			d := &events.DeadLetter{
				Owner: owner, Worker: "gone", Kind: "task", Failure: *events.NewFailure(events.ReasonNoWorker, "m", ""),
				At: time.Now(), FirstAt: time.Now(), Stream: "S", StreamSeq: 1,
				Subject: "pinwheel.stored.0.task." + owner + ".gone",
			}
			for name, values := range d.Encode() {
				j.Raw = append(j.Raw, [2][]byte{[]byte(name), []byte(values[0])})
			}
		}
	}
	good := letterLine(t, "acme", 1, nil)
	for name, c := range map[string]struct{ line, want string }{
		"another owner":   {letterLine(t, "beta", 1, nil), `403 line 2: the letter is of owner "beta", and not of acme`},
		"in raw headers":  {letterLine(t, "acme", 1, raw("beta")), `403 line 2: the letter is of owner "beta"`},
		"tokens as owner": {letterLine(t, "acme.>", 1, nil), `403 line 2: the letter is of owner "acme.>"`},
		"another's event": {letterLine(t, "acme", 1,
			func(j *events.LetterJSON) { j.Subject = "pinwheel.stored.0.task.beta.w" }), "400 line 2: subject"},
		"tokens as stream": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.Stream = "S.>" }),
			"400 line 2: not a dead letter: stream"},
		"wildcard reason": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.Reason = "*" }),
			"400 line 2: not a dead letter: reason"},
		"steering hook": {letterLine(t, "acme", 1,
			func(j *events.LetterJSON) { j.Hook = &events.DeadHook{Subject: "$JS.API.>"} }),
			"400 line 2: not a dead letter: onDeadLetter"},
		"version": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.Version = "\x1b[2J" }), "400 line 2: version"},
		"node": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.Node = strings.Repeat("n", 5000) }),
			"400 line 2: node"},
		"reason of a run": {letterLine(t, "acme", 1,
			func(j *events.LetterJSON) { j.History = []events.FailedRun{{Reason: "\x1b[2J"}} }), "400 line 2: history: reason"},
		"many runs": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.History = make([]events.FailedRun, 11) }),
			"400 line 2: history has 11"},
		"event id": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.EventID = strings.Repeat("e", 257) }),
			"400 line 2: eventId"},
		"line break": {letterLine(t, "acme", 1,
			func(j *events.LetterJSON) { j.Headers = events.Header{"X": {"a\r\nDead-Owner: beta"}} }),
			"400 line 2: not a dead letter: header X"},
		"name of a header": {letterLine(t, "acme", 1,
			func(j *events.LetterJSON) { j.Headers = events.Header{"X: a\r\nY": {"b"}} }),
			"400 line 2: not a dead letter: header"},
		"another's body": {letterLine(t, "acme", 1, func(j *events.LetterJSON) { j.BodyBytes = 1 << 40 }),
			"400 line 2: not a dead letter: its body"},
		"no letter":         {"null\n", "400 line 2: not a dead letter"},
		"unknown field":     {`{"imported_by":"fleet"}` + "\n", "400 line 2: not a dead letter"},
		"more than allowed": {strings.Repeat("\n", 1000), "400 body has more than 1000 lines"},
	} {
		_, failure := imported(good + c.line)
		require.True(t, strings.HasPrefix(failure, c.want), "%s: %q", name, failure)
		require.Len(t, h.dead(), before, "%s: nothing is stored", name)
	}

	// Headers of the event that only the fleet writes are left out; those that steer NATS steer nothing.
	answer, failure := imported(letterLine(t, "acme", 7, func(j *events.LetterJSON) {
		j.Imported, j.Replays = time.Time{}, 3
		j.Headers = events.Header{
			"X-A": {"1"}, "Dead-Of": {strings.Repeat("0", 32)}, "dead-owner": {"beta"}, "Dead-Replay": {"x"},
			"Dead-Original-Nats-Rollup": {"all"}, "Nats-Rollup": {"all"},
			"Nats-Expected-Last-Msg-Id": {"x"}, "Nats-TTL": {"1s"}, "Status": {"503"},
		}
	}))
	require.Empty(t, failure)
	require.JSONEq(t, `{"stored":1,"there":0}`, answer)
	letters := h.dead()
	require.Len(t, letters, before+1, "the others are there")
	l := letters[len(letters)-1]
	require.Equal(t, "acme", l.Owner)
	require.Equal(t, events.Header{"X-A": {"1"}, "Nats-Rollup": {"all"}, "Nats-Expected-Last-Msg-Id": {"x"},
		"Nats-TTL": {"1s"}, "Status": {"503"}}, l.Header)
	require.WithinDuration(t, time.Now(), l.Imported, time.Minute, "the fleet says that it was imported")

	// Many letters of one place would be compared with each other.
	var same strings.Builder
	for range 20 {
		same.WriteString(letterLine(t, "acme", 9, nil))
	}
	r := control.ImportLetters{Body: storedBody(t, acme, "acme", same.String())}
	for failure = ""; failure == ""; {
		if answer, failure = askAsOwner(t, acme, "acme", "dead.import", jsonOf(t, r)); failure == "" {
			var one control.ImportedLetters
			require.NoError(t, json.Unmarshal([]byte(answer), &one))
			require.Greater(t, one.Next, r.From)
			r.From = one.Next
		}
	}
	require.Equal(t, 16, r.From)
	require.Contains(t, failure, "409 line 17: there are 16 letters of events with this stream and streamSeq already")

	// They count as calls of the owner.
	h.setPolicyOf("acme", workers.Policy{Calls: 2})
	seq := uint64(1000)
	require.Eventually(t, func() bool {
		var lines strings.Builder
		for range 5 {
			seq++
			lines.WriteString(letterLine(t, "acme", seq, nil))
		}
		one := done[control.ImportedLetters](t, acme, "acme", "dead.import",
			control.ImportLetters{Body: storedBody(t, acme, "acme", lines.String())})
		return one.Next > 0 && one.Stored == one.Next && one.Stored < 5
	}, patience, 600*time.Millisecond)
	_, failure = askAsOwner(t, beta, "beta", "dead.import",
		jsonOf(t, control.ImportLetters{Body: storedBody(t, beta, "beta", letterLine(t, "beta", 2, nil))}))
	require.Empty(t, failure, "others are not charged")
}
