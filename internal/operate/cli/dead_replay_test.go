package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestLettersAreChosenByTextTimeAndReplays(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	require.Zero(t, f.Pinwheel("dead", "replay", "1").Code)
	await(t, f, 3)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"2,3,4", nil},
		{"3", []string{"--match", "for 3$"}},
		{"3", []string{"--text", "FOR 3"}},
		{"", []string{"--text", "for 3$"}},
		{"", []string{"--until", "1h"}},
		{"2,3,4", []string{"--until", "2999-01-01T00:00:00Z"}},
		{"4", []string{"--replays", "1-"}},
		{"4", []string{"--replays", "1"}},
		{"2,3", []string{"--replays", "0"}},
		{"2,3", []string{"--replays", "-0"}},
		{"3,4", []string{"--after", "2"}},
		{"3", []string{"--after", "2", "--limit", "1"}},
	} {
		var ids []string
		for _, line := range letters(f, c.args...) {
			var l struct{ ID int }
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			ids = append(ids, fmt.Sprint(l.ID))
		}
		require.Equal(t, c.want, strings.Join(ids, ","), "%q", c.args)
	}
}

// echoes acks an event if its payload has a price, and logs the payload.
const echoes = `export default { async task(event) {
  if (!event.payload.price) throw new Error("no price");
  console.log(JSON.stringify([event.payload, event.headers.get("x-source"), event.replays]));
} };`

func TestEditedLetterIsReplayedElsewhere(t *testing.T) {
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2")
	other := filepath.Join(t.TempDir(), "other.js")
	require.NoError(t, os.WriteFile(other, []byte(echoes), 0o600))
	f.Deploy(t, other, "--owner", "acme")
	logs, err := f.NC.SubscribeSync("pinwheel.logs.acme.other")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())

	require.Equal(t, fleettest.Result{Out: "1 is 3 now\n"}, f.Pinwheel("dead", "edit", "1", "--patch", `{"price":5}`,
		"--set-header", "x-source=desk"))
	require.Contains(t, f.Pinwheel("dead", "ls").Out, "0 edited")
	require.Regexp(t, `edited +\d{4}-`, f.Pinwheel("dead", "show", "3").Out)
	require.Equal(t, fleettest.Result{Out: "3 acme/orders task exception\n1 replayed\n"},
		f.Pinwheel("dead", "replay", "3", "--to", "other"))
	m, err := logs.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `[{\"id\":1,\"price\":5},\"desk\",1]`)

	// The edit is for this replay only, and made in an editor.
	t.Setenv("VISUAL", `sed -i s/2/7/`)
	require.Equal(t, fleettest.Result{Code: 2, Err: "pinwheel: --editor edits one letter: name its id\npinwheel: see 'pinwheel dead replay --help'\n"},
		f.Pinwheel("dead", "replay", "--all", "--editor"))
	require.Zero(t, f.Pinwheel("dead", "edit", "2").Code)
	require.Contains(t, f.Pinwheel("dead", "show", "4", "--json").Out, `"body":"{\"id\":7}"`)
	require.Zero(t, f.Pinwheel("dead", "replay", "4", "--to", "other@1", "--patch", `{"price":1}`).Code)
	m, err = logs.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `{\"id\":7,\"price\":1}`)
	awaitNoEvents(t, f)
	require.Empty(t, letters(f))
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	require.Contains(t, f.Pinwheel("dead", "edit", "4").Err, "no such dead letter: 4")
}

// A replay for a worker that is not deployed is refused before anything is published.
func TestReplayForWhatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2")
	published, err := f.NC.SubscribeSync("pinwheel.events.>")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	for to, want := range map[string]string{
		"orders@99": `dead letter 1 is not replayed: no such version: acme/orders has no version 99; it has 1-`,
		"@99":       `dead letter 1 is not replayed: no such version: acme/orders has no version 99; it has 1-`,
		"ordres":    `dead letter 1 is not replayed: no such worker: acme/ordres; 'pinwheel workers ls --owner acme' lists those there are`,
	} {
		for _, more := range []string{"--force", "--dry-run"} {
			r := f.Pinwheel("dead", "replay", "1", "--to", to, more)
			require.Equal(t, 1, r.Code, to)
			require.Contains(t, r.Err, want)
		}
	}
	require.Len(t, letters(f), 2)
	require.Zero(t, f.Pinwheel("workers", "rm", "acme/orders", "--yes").Code)
	r := f.Pinwheel("dead", "replay", "--all")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "0 replayed, 2 not\n", r.Out)
	require.Contains(t, r.Err, "dead letter 2 is not replayed: no such worker: acme/orders")
	require.Len(t, letters(f), 2)
	_, err = published.NextMsg(tick)
	require.ErrorIs(t, err, nats.ErrTimeout, "nothing was published")
}

func TestHowReplaysEndedIsTold(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	other := filepath.Join(t.TempDir(), "other.js")
	require.NoError(t, os.WriteFile(other, []byte(mended), 0o600))
	f.Deploy(t, other, "--owner", "acme")
	require.Contains(t, f.Pinwheel("dead", "replays").Out, "REPLAYED")
	require.Zero(t, f.Pinwheel("dead", "replay", "1").Code)
	require.Zero(t, f.Pinwheel("dead", "replay", "2", "--to", "other@1").Code)
	require.Eventually(t, func() bool {
		return strings.Count(f.Pinwheel("dead", "replays", "--state", "dead").Out, "\n") == 2 &&
			strings.Count(f.Pinwheel("dead", "replays", "--state", "succeeded").Out, "\n") == 2
	}, patience, tick)
	r := f.Pinwheel("dead", "replays", "--worker", "acme/orders")
	require.Zero(t, r.Code, r.Err)
	require.Regexp(t, `(?m)^1 +\d{4}-\S+ \S+ +acme/orders +task +\d+ +dead as 4 +\d{4}-\S+ \S+ +TypeError: no prices for 1$`, r.Out)
	require.NotContains(t, r.Out, "other")
	require.Regexp(t, `(?m)^came of +the replay of 1, \d{4}-`, f.Pinwheel("dead", "show", "4").Out)
	require.NotContains(t, f.Pinwheel("dead", "show", "3").Out, "came of")
	r = f.Pinwheel("dead", "replays", "2", "--json")
	require.Regexp(t, `^{"id":2,"owner":"acme","worker":"other","version":"1","kind":"task","eventId":"\d+","replay":1,"at":"[^"]+","state":"succeeded","ended":"[^"]+"}\n$`, r.Out)
	r = f.Pinwheel("dead", "replays", "3", "77", "1")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "pinwheel: no replay of dead letter 3 is known: the letter is there\npinwheel: no replay of dead letter 77 is known\n", r.Err)
	require.Contains(t, r.Out, "dead as 4")
	require.Contains(t, f.Pinwheel("dead", "show", "1").Err, "no such dead letter: 1; 'pinwheel dead ls' lists them, 'pinwheel dead replays ID' says how the replay of one ended")
	r = f.Pinwheel("dead", "replays", "--state", "done")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, `--state "done": it is one of waiting, running, put-off, succeeded, failed, dead, unknown`)
}

// A worker may be named in the form that lists show.
func TestWorkersAreNamedAsListsShowThem(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1")
	require.Len(t, letters(f, "--worker", "acme/orders"), 1)
	require.Len(t, letters(f, "--worker", "acme/orders", "--owner", "acme"), 1)
	require.Empty(t, letters(f, "--worker", "beta/orders"))
	require.Equal(t, "1 exported\n", f.Pinwheel("dead", "export", "--worker", "acme/orders").Err)
	require.Contains(t, f.Pinwheel("dead", "replay", "--worker", "acme/orders", "--dry-run").Out, "1 would be replayed")
	require.Contains(t, f.Pinwheel("dead", "rm", "--worker", "acme/orders", "--dry-run").Out, "1 would be removed")
	require.Zero(t, f.Pinwheel("send", "task", "acme/orders", "--after", "1h", "--no-wait").Code)
	require.Eventually(t, func() bool {
		return strings.Contains(f.Pinwheel("schedules", "waiting", "--worker", "acme/orders").Out, "acme/orders")
	}, patience, tick)
	require.NotContains(t, f.Pinwheel("schedules", "waiting", "--worker", "beta/orders").Out, "acme/orders")
	r := f.Pinwheel("dead", "ls", "--worker", "acme/orders", "--owner", "beta")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, `--worker "acme/orders" is of owner acme, and not of beta`)
	require.Equal(t, 2, f.Pinwheel("dead", "ls", "--worker", "acme/or/ders").Code)
}

func TestEditWithoutChangesKeepsItsNumber(t *testing.T) {
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1")
	stays := fleettest.Result{Out: "1 stays as it is: nothing was changed\n"}
	t.Setenv("EDITOR", "true")
	t.Setenv("VISUAL", "")
	require.Equal(t, stays, f.Pinwheel("dead", "edit", "1"))
	t.Setenv("EDITOR", "echo >>") // adds a line break at the end, as editors do
	require.Equal(t, stays, f.Pinwheel("dead", "edit", "1"))
	require.Equal(t, stays, f.Pinwheel("dead", "edit", "1", "--patch", `{"id": 1}`))
	require.Equal(t, fleettest.Result{Out: "1 is 2 now\n"}, f.Pinwheel("dead", "edit", "1", "--patch", `{"id": 2}`))
}

func TestLettersGoToAFileAndComeBack(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	file := filepath.Join(t.TempDir(), "letters.ndjson")
	require.Equal(t, fleettest.Result{Err: "2 exported\n"}, f.Pinwheel("dead", "export", "1", "2", "--file", file))
	all := f.Pinwheel("dead", "export")
	require.Equal(t, "3 exported\n", all.Err)
	require.Equal(t, 3, strings.Count(all.Out, "\n"))
	require.Equal(t, fleettest.Result{Out: "0 imported, 2 were there already\n"}, f.Pinwheel("dead", "import", file))
	require.Zero(t, f.Pinwheel("dead", "rm", "2", "3").Code)
	require.Equal(t, fleettest.Result{Out: "2 imported, 1 were there already\n"},
		f.PinwheelWith(all.Out, "dead", "import"))
	require.Len(t, letters(f), 3)
	require.Regexp(t, `imported +\d{4}-`, f.Pinwheel("dead", "show", "4").Out)
	r := f.PinwheelWith("nonsense\n", "dead", "import", "-")
	require.Equal(t, 1, r.Code)
	require.Contains(t, r.Err, "pinwheel: line 1: not a dead letter")
}

func TestReplayTellsMachinesWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1")
	r := f.Pinwheel("dead", "replay", "1", "9", "--json", "--dry-run")
	require.Equal(t,
		fleettest.Result{Code: 1, Out: `{"id":1,"ok":true}` + "\n" + `{"id":9,"ok":false,"error":"no such dead letter: 9"}` + "\n"}, r)
}

// It runs alone: the signal reaches every command that runs in this process.
func TestInterruptedReplayEndsBetweenLetters(t *testing.T) {
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	require.Equal(t, 0, f.Pinwheel("dead", "rm", "--all", "--dry-run").Code)
	replayed, err := f.NC.SubscribeSync("pinwheel.events.task.acme.orders")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	done := make(chan fleettest.Result)
	go func() { done <- f.Pinwheel("dead", "replay", "--all", "--rate", "0.1") }()
	_, err = replayed.NextMsg(patience)
	require.NoError(t, err)
	// the command waits ten seconds before the next letter, and handles the signal then
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
	select {
	case r := <-done:
		require.Equal(t, 1, r.Code)
		require.Equal(t, "1 acme/orders task exception\n1 replayed\n", r.Out)
		require.Equal(t, "pinwheel: interrupted: context canceled after 1 of at most 3 letters; nothing is half done, and the same command goes on with the others\n", r.Err)
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}
