package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// withOwner starts a fleet under a shipped configuration. owner is the same fleet for the user of acme.
func withOwner(t *testing.T, file string) (f, owner *fleettest.Fleet) {
	url := natstest.StartConfigured(t, "../../../deploy/nats/"+file)
	f = fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret", config.List{
			"_INBOX.{owner}.", "_R_."}, 256<<20
	})
	o := *f
	o.Config.NatsUser, o.Config.NatsPassword, o.Config.Owner, o.Config.ReplyPrefixes =
		"acme", "acme-secret", "acme", config.Default().ReplyPrefixes
	return f, &o
}

func eachConfiguration(t *testing.T, test func(t *testing.T, f, owner *fleettest.Fleet)) {
	for _, file := range []string{"users.conf", "accounts.conf"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			f, owner := withOwner(t, file)
			test(t, f, owner)
		})
	}
}

// An owner's people use its keys and values with nothing but their NATS user, and see what the fleet's user sees.
func TestKVOfOwners(t *testing.T) {
	t.Parallel()
	eachConfiguration(t, testKVOfOwner)
}

func testKVOfOwner(t *testing.T, f, owner *fleettest.Fleet) {
	r := owner.Pinwheel("kv", "ls", "acme/space")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "acme: the owner has no KV data yet")
	require.Zero(t, f.Pinwheel("kv", "put", "beta/space", "k", "--value", "beta's").Code)
	dir := t.TempDir()
	largest := bytes.Repeat([]byte{0, 255, 'a', '"'}, 512<<10/4)
	file := filepath.Join(dir, "largest")
	require.NoError(t, os.WriteFile(file, largest, 0o600))
	r = owner.Pinwheel("kv", "put", "acme/space", "largest", "--file", file)
	require.Equal(t, "set largest of acme/space, 524288 bytes\n", r.Out, r.Err)
	require.True(t, owner.Pinwheel("kv", "get", "acme/space", "largest").Out == string(largest))
	r = owner.Pinwheel("kv", "put", "acme/space", "a key\x1b", "--value", "théy", "--ttl", "1h", "--metadata", `{"n":1}`)
	require.Zero(t, r.Code, r.Err)
	require.Zero(t, owner.Pinwheel("kv", "put", "acme/space", "empty", "--value", "").Code)
	for _, args := range []string{"ls acme/space", "ls acme/space --json", "ls acme/space --prefix a --json",
		"ls acme/other", "get acme/space empty", "get acme/space none"} {
		want, got := f.Pinwheel(strings.Fields("kv "+args)...), owner.Pinwheel(strings.Fields("kv "+args)...)
		require.Equal(t, want, got, args)
	}
	want, got := f.Pinwheel("kv", "get", "acme/space", "a key\x1b", "--json"), owner.Pinwheel("kv", "get", "acme/space",
		"a key\x1b", "--json")
	require.Equal(t, want, got)
	require.JSONEq(t, `{"key":"a key\u001b","value":"théy","metadata":{"n":1}}`, got.Out)

	// More than an answer takes, and more than a page.
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "KV_PINWHEEL_KV_acme") // no process lets it grow for what comes by hand
	require.NoError(t, err)
	wide := s.CachedInfo().Config
	wide.MaxBytes = 16 << 20
	_, err = js.UpdateStream(t.Context(), wide)
	require.NoError(t, err)
	metadata, n := `{"long":"`+strings.Repeat("<", 900)+`"}`, 1500
	for i := range n {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: fmt.Sprintf("$KV.PINWHEEL_KV_acme.many.k%04d", i),
			Header: nats.Header{"Pinwheel-Metadata": {metadata}}, Data: []byte("v")})
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	got = owner.Pinwheel("kv", "ls", "acme/many", "--json")
	require.Zero(t, got.Code, got.Err)
	require.Equal(t, n, strings.Count(got.Out, "\n"))
	require.True(t, f.Pinwheel("kv", "ls", "acme/many", "--json") == got)

	r = owner.Pinwheel("kv", "rm", "acme/space", "largest")
	require.Equal(t, "removed largest of acme/space, 524288 bytes\n", r.Out, r.Err)
	r = owner.Pinwheel("kv", "rm", "acme/space", "largest")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `acme/space has no key "largest"`)
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "beta/space is not of owner acme", []string{"get", "beta/space", "k"}},
		{2, "namespace", []string{"get", "acme/*", "k"}},
		{2, "is not allowed as a key name", []string{"put", "acme/space", "..", "--value", "v"}},
		{2, "key length limit of 512", []string{"put", "acme/space", strings.Repeat("k", 513), "--value", "v"}},
		{2, "exceeds limit of 1024", []string{"put", "acme/space", "k", "--value", "v", "--metadata",
			`"` + strings.Repeat("m", 1024) + `"`}},
	} {
		r := owner.Pinwheel(append([]string{"kv"}, c.args...)...)
		require.Contains(t, r.Err, c.want, "%.80q", c.args)
		require.NotZero(t, r.Code, "%.80q", c.args)
	}
	require.Equal(t, "beta's", f.Pinwheel("kv", "get", "beta/space", "k").Out)

	changes := owner.Pinwheel("audit").Out
	require.Regexp(t, `acme +kv.put +owner acme "\S+@\S+" +owner-api \S+ +\{"key":"largest","namespace":"space","owner":"acme","with":\["value"\]\}`, changes)
	require.Regexp(t, `acme +kv.rm +owner acme .*\{"key":"largest","namespace":"space","owner":"acme"\}`, changes)
	require.Equal(t, 1, strings.Count(changes, "kv.rm"), "what changed nothing is not recorded")
	require.NotContains(t, changes, "théy")
}

// So with its objects, of any size that a worker could store.
func TestObjectsOfOwners(t *testing.T) {
	t.Parallel()
	eachConfiguration(t, testObjectsOfOwner)
}

func testObjectsOfOwner(t *testing.T, f, owner *fleettest.Fleet) {
	r := owner.Pinwheel("objects", "ls", "acme/files")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "acme: the owner has no objects yet")
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	data := bytes.Repeat([]byte("0123456789abcde\xff"), 25<<20/16)
	require.NoError(t, os.WriteFile(from, data, 0o600))
	r = owner.Pinwheel("objects", "put", "acme/files", "by/person", "--file", from, "--content-type", "image/png",
		"--metadata", "from=cli=x")
	require.Equal(t, "stored by/person of acme/files, 26214400 bytes\n", r.Out, r.Err)
	r = owner.Pinwheel("objects", "get", "acme/files", "by/person", "--file", to)
	require.Zero(t, r.Code, r.Err)
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	r = owner.Pinwheel("objects", "put", "acme/files", "a key\x1b", "--file", os.DevNull)
	require.Zero(t, r.Code, r.Err)
	for i := range 4 { // more than an answer takes
		r = owner.PinwheelWith("x", "objects", "put", "acme/many", fmt.Sprint("k", i), "--metadata",
			"n="+strings.Repeat("\x01", 8000))
		require.Zero(t, r.Code, r.Err)
	}
	for _, args := range []string{
		"ls acme/files", "ls acme/files --json", "ls acme/files --prefix by/ --json", "ls acme/many --json", "ls acme/other",
		"get acme/files by/person --json", "get acme/files none",
	} {
		want, got := f.Pinwheel(strings.Fields("objects "+args)...), owner.Pinwheel(strings.Fields("objects "+args)...)
		require.Equal(t, want, got, args)
	}
	require.Equal(t, f.Pinwheel("objects", "get", "acme/files", "a key\x1b"),
		owner.Pinwheel("objects", "get", "acme/files", "a key\x1b"))
	r = owner.Pinwheel("objects", "rm", "acme/files", "by/person")
	require.Equal(t, "removed by/person of acme/files, 26214400 bytes\n", r.Out, r.Err)
	r = owner.Pinwheel("objects", "rm", "acme/files", "by/person")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, `acme/files has no object "by/person"`)
	require.Contains(t, owner.Pinwheel("objects", "get", "beta/files", "k").Err, "beta/files is not of owner acme")
	require.Contains(t, owner.Pinwheel("objects", "put", "acme/files", strings.Repeat("k", 1025), "--file", os.DevNull).
		Err, "object name is not valid")
	changes := owner.Pinwheel("audit").Out
	require.Regexp(t, `acme +objects.put +owner acme "\S+@\S+" +owner-api \S+ +\{"bucket":"files","key":"by/person","owner":"acme","with":\["body","cont`, changes)
	require.Regexp(t, `acme +objects.rm +owner acme .*\{"bucket":"files","key":"by/person","owner":"acme"\}`, changes)

	// The parts of bodies are gone.
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), events.StreamBodies)
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("pinwheel.part.>"))
	require.NoError(t, err)
	require.Empty(t, info.State.Subjects)
}

// lay stores a dead letter.
func lay(t *testing.T, f *fleettest.Fleet, owner string, seq uint64, body []byte) {
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	d := &events.DeadLetter{
		Owner: owner, Worker: "w", Kind: "task", EventID: fmt.Sprint("e", seq),
		Failure: *events.NewFailure(events.ReasonException, "no\n", "at w.js:1"), Version: "3-0123456789ab",
		Node: "n/1", Attempts: 3, Replays: 1, FirstAt: time.Now(), At: time.Now(), Stream: events.StreamEvents,
		StreamSeq: seq, Stored: time.Now(),
		Subject: "pinwheel.stored.0.task." + owner + ".w", Header: events.Header{"X-A": {"1", "ü"}, "Nats-Msg-Id": {"m"}},
		Body:    body,
		History: []events.FailedRun{{At: time.Now(), Attempt: 1, Reason: events.ReasonTimeout, Message: "slow", Node: "n/1"}},
	}
	if seq == 2 {
		d.Header["X-Bytes"] = []string{"\xff"}
	}
	s := events.Subjects(events.DefaultPrefix)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: s.DeadLetter(d, d.Failure.Reason),
		Header: nats.Header(d.Encode()), Data: d.Body})
	require.NoError(t, err)
}

// An owner takes its dead letters out and brings them back, whatever is in them, and those of others stay where they
// are.
func TestLettersOfOwnersGoOutAndComeBack(t *testing.T) {
	t.Parallel()
	eachConfiguration(t, testLettersOfOwner)
}

func testLettersOfOwner(t *testing.T, f, owner *fleettest.Fleet) {
	bodies := [][]byte{
		[]byte(`{"n":1}`), {0, 255}, bytes.Repeat([]byte{0xff}, 900<<10), bytes.Repeat([]byte{1}, 900<<10), nil,
		bytes.Repeat([]byte("text "), 100_000),
	}
	for i := range 250 { // more than a body of an import has
		bodies = append(bodies, fmt.Append(nil, i))
	}
	for i, body := range bodies {
		lay(t, f, "acme", uint64(i+1), body)
	}
	lay(t, f, "beta", 1, []byte("secret of beta"))
	exported := func(f *fleettest.Fleet, args ...string) string {
		r := f.Pinwheel(append([]string{"dead", "export"}, args...)...)
		require.Zero(t, r.Code, r.Err)
		require.Equal(t, fmt.Sprintf("%d exported\n", strings.Count(r.Out, "\n")), r.Err)
		return r.Out
	}
	same := func(want, got string) {
		t.Helper()
		a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
		require.Len(t, b, len(a))
		for i := range a {
			want, _, _ := strings.Cut(a[i], `,"raw":`) // headers in any order
			got, _, _ := strings.Cut(b[i], `,"raw":`)
			require.True(t, want == got, "%d: %.300s and %.300s", i, want, got)
		}
	}
	before := exported(owner)
	require.Equal(t, len(bodies), strings.Count(before, "\n"))
	same(exported(f, "--owner", "acme"), before)
	same(exported(f, "--owner", "acme", "--limit", "7", "--after", "2"), exported(owner, "--limit", "7", "--after", "2"))
	same(exported(f, "1", "3"), exported(owner, "1", "3"))
	r := owner.Pinwheel("dead", "export", "2", fmt.Sprint(len(bodies)+1))
	require.Equal(t, 1, r.Code)
	require.Equal(t, fmt.Sprintf("pinwheel: no such dead letter: %d\n1 exported, 1 not\n", len(bodies)+1), r.Err)
	require.NotContains(t, r.Out, "beta")
	require.Contains(t, owner.Pinwheel("dead", "export", "--owner", "beta").Err, `owner "beta" is not of owner acme`)

	file := filepath.Join(t.TempDir(), "acme.ndjson")
	r = owner.Pinwheel("dead", "export", "--file", file)
	require.Zero(t, r.Code, r.Err)
	require.Zero(t, owner.Pinwheel("dead", "rm", "--all").Code)
	require.Empty(t, exported(owner))
	r = owner.Pinwheel("dead", "import", file)
	require.Equal(t, fmt.Sprintf("%d imported, 0 were there already\n", len(bodies)), r.Out, r.Err)
	r = owner.PinwheelWith(before, "dead", "import")
	require.Equal(t, fmt.Sprintf("0 imported, %d were there already\n", len(bodies)), r.Out, r.Err)
	plain := func(text string) string { // the number of a letter is new, and when it was imported
		var out strings.Builder
		for line := range strings.Lines(text) {
			id, rest, _ := strings.Cut(line, ",")
			require.Regexp(t, `^\{"id":\d+$`, id)
			if head, imported, ok := strings.Cut(rest, `"imported":"`); ok {
				_, tail, _ := strings.Cut(imported, `",`)
				rest = head + tail
			}
			out.WriteString(rest)
		}
		return out.String()
	}
	same(plain(before), plain(exported(owner)))
	require.Equal(t, 1, strings.Count(exported(f, "--owner", "beta"), "\n"))

	// Letters of others, and lines that are none, are refused by their lines. Those before are stored.
	lines := strings.SplitAfter(before, "\n")
	require.Zero(t, owner.Pinwheel("dead", "rm", "--all").Code)
	r = owner.PinwheelWith(lines[0]+"\n"+exported(f, "--owner", "beta"), "dead", "import")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "1 imported, 0 were there already\n", r.Out)
	require.Contains(t, r.Err, `line 3: owner "beta": the letter is not of owner acme`)
	r = owner.PinwheelWith(lines[1]+"{}\n", "dead", "import")
	require.Contains(t, r.Err, "line 2: not a dead letter")
	require.Equal(t, 2, strings.Count(exported(owner), "\n"))

	var imports []string
	for line := range strings.Lines(owner.Pinwheel("audit", "--json").Out) {
		var rec struct {
			Action  string
			Request json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &rec))
		if rec.Action == "dead.import" {
			imports = append(imports, string(rec.Request))
		}
	}
	require.GreaterOrEqual(t, len(imports), 4)
	require.Equal(t, []string{`{"number":1}`, `{"number":1}`}, imports[len(imports)-2:])
}
