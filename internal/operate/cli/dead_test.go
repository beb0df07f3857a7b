package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const (
	patience = 60 * time.Second
	tick     = 20 * time.Millisecond
)

// broken throws in a nested call, so that there is a stack.
const broken = `interface Order { id: number }

function total(order: Order): number {
  throw new TypeError("no prices for " + order.id);
}

export default {
  async task(event: { payload: Order }) { return total(event.payload); },
};
`

const mended = `export default { async task(event) { return event.payload.id } };`

// makeDeadLetters makes dead letters of acme/orders: tasks with these IDs that throw.
func makeDeadLetters(t *testing.T, f *fleettest.Fleet, ids ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "orders.ts")
	require.NoError(t, os.WriteFile(path, []byte(broken), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.pinwheel.json"),
		[]byte(`{"retries":{"maxAttempts":2,"initialMs":1}}`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	for _, id := range ids {
		r := f.Pinwheel("send", "task", "acme/orders", "--data", `{"id":`+id+`}`, "--header", "X-Source=shop")
		require.Equal(t, 1, r.Code, r.Err)
	}
	await(t, f, len(ids))
	return path
}

// await waits until there are n dead letters: the reply goes out a little before the letter is stored.
func await(t *testing.T, f *fleettest.Fleet, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(letters(f)) == n }, patience, tick)
}

// letters returns the lines of dead ls --json.
func letters(f *fleettest.Fleet, args ...string) []string {
	out := f.Pinwheel(append([]string{"dead", "ls", "--json"}, args...)...).Out
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")[:strings.Count(out, "\n")]
}

func TestDeadLetterIsShownMendedAndReplayed(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	require.Equal(t, "ID  FAILED  WORKER  KIND  REASON  ATTEMPTS  REPLAYS  MESSAGE\n", f.Pinwheel("dead", "ls").Out)
	path := makeDeadLetters(t, f, "7")
	require.Regexp(t, `\n1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S+ +acme/orders +task +exception +2 +0 +TypeError: no prices for 7\n$`, f.Pinwheel("dead", "ls").Out)

	r := f.Pinwheel("dead", "show", "1")
	require.Zero(t, r.Code, r.Err)
	for _, want := range []string{
		`id +1\n`, `owner +acme\n`, `worker +orders\n`, `version +1-[0-9a-f]{12}\n`, `kind +task\n`, `reason +exception\n`,
		`message +TypeError: no prices for 7\n`, `attempts +2\n`, `first +\d{4}-`, `last +\d{4}-`, `replays +0\n`,
		`event id +\d+\n`,
		`stored as +pinwheel.events.\d+.task.acme.orders, PINWHEEL_EVENTS:\d+\n`, `header +X-Source: shop\n`,
		`\nRUN +FAILED +REASON +NODE +MESSAGE\n1 +\d{4}-\S+ \S+ +exception +\S+ +TypeError: no prices for 7\n2 +\d{4}-`,
		`at total \(.*orders\.ts:4:9\)\n`, `\n\n{"id":7}\n$`,
	} {
		require.Regexp(t, want, r.Out)
	}
	var letter struct {
		ID       uint64
		Reason   string
		Attempts int
		Body     string
		Headers  map[string][]string
	}
	require.NoError(t, json.Unmarshal([]byte(f.Pinwheel("dead", "show", "1", "--json").Out), &letter))
	require.Equal(t, `{"id":7}`, letter.Body)
	require.Equal(t, []string{"shop"}, letter.Headers["X-Source"])
	require.Equal(t, "exception", letter.Reason)
	require.Equal(t, uint64(1), letter.ID)

	r = f.Pinwheel("dead", "replay", "1", "--dry-run")
	require.Equal(t, fleettest.Result{Out: "1 acme/orders task exception\n1 would be replayed\n"}, r)
	require.NoError(t, os.WriteFile(path, []byte(mended), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	r = f.Pinwheel("dead", "replay", "1")
	require.Equal(t, fleettest.Result{Out: "1 acme/orders task exception\n1 replayed\n"}, r)
	require.Empty(t, letters(f))
	awaitNoEvents(t, f)
	require.Empty(t, letters(f), "it ran well this time")

	r = f.Pinwheel("dead", "show", "1")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "pinwheel: no such dead letter: 1; 'pinwheel dead ls' lists them, 'pinwheel dead replays ID' says how the replay of one ended\n", r.Err)
}

// awaitNoEvents waits until every event is settled.
func awaitNoEvents(t *testing.T, f *fleettest.Fleet) {
	t.Helper()
	js, err := jetstream.New(f.NC)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n, err := resources.Count(t.Context(), js, "PINWHEEL_EVENTS", events.Subjects(events.DefaultPrefix).Anchor())
		return err == nil && n == 0
	}, patience, tick)
}

func TestDeadLettersAreChosen(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	require.Equal(t, 1, f.Pinwheel("send", "task", "globex/missing").Code)
	await(t, f, 4)
	for _, c := range []struct {
		want int
		args []string
	}{
		{4, nil}, {3, []string{"--owner", "acme"}}, {0, []string{"--owner", "initech"}}, {1, []string{"--worker", "missing"}},
		{4, []string{"--kind", "task"}}, {0, []string{"--kind", "scheduled"}}, {1, []string{"--reason", "no-worker"}},
		{3, []string{"--reason", "exception", "--owner", "acme", "--worker", "orders", "--kind", "task"}},
		{2, []string{"--limit", "2"}}, {4, []string{"--since", "1h"}}, {0, []string{"--since", "0s"}},
		{4, []string{"--since", "2026-01-01T00:00:00Z"}}, {0, []string{"--since", "2999-01-01T00:00:00Z"}},
	} {
		require.Len(t, letters(f, c.args...), c.want, "%q", c.args)
		if len(c.args) > 0 && c.args[0] != "--limit" {
			r := f.Pinwheel(append([]string{"dead", "rm", "--dry-run"}, c.args...)...)
			require.Zero(t, r.Code, r.Err)
			require.Equal(t, c.want, strings.Count(r.Out, "\n")-1, r.Out)
		}
	}
	require.Len(t, letters(f), 4, "--dry-run removes nothing")

	r := f.Pinwheel("dead", "rm", "1", "99", "1")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "1 acme/orders task exception\n1 removed, 1 not\n", r.Out)
	require.Equal(t, "pinwheel: no such dead letter: 99\n", r.Err)
	require.Equal(t, "2 acme/orders task exception\n1 removed\n", f.Pinwheel("dead", "rm", "--owner", "acme", "--limit", "1").
		Out)
	require.Equal(t, "2 removed", lastLine(f.Pinwheel("dead", "rm", "--all").Out))
	require.Equal(t, fleettest.Result{Out: "0 removed\n"}, f.Pinwheel("dead", "rm", "--all"))
}

func TestReplayThatFailsAgainIsANewLetter(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1", "2", "3")
	began := time.Now()
	r := f.Pinwheel("dead", "replay", "--all", "--rate", "20/s")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, "3 replayed", lastLine(r.Out), "those that come back meanwhile are not replayed again")
	require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond, "two pauses of 50 ms")
	await(t, f, 3)
	var letter struct{ ID, Replays, Attempts int }
	require.NoError(t, json.Unmarshal([]byte(letters(f)[0]), &letter))
	require.Equal(t, 1, letter.Replays)
	require.Equal(t, 2, letter.Attempts)
	require.Greater(t, letter.ID, 3)
}

func TestTheReplayGuardIsForcedOpen(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1")
	// A publisher can write the count itself, which is faster than 10 replays.
	require.Equal(t, 1, f.Pinwheel("send", "task", "acme/orders", "--data", `{"id":2}`, "--header", "Dead-Replays=10").
		Code)
	await(t, f, 2)
	r := f.Pinwheel("dead", "replay", "--owner", "acme")
	require.Equal(t, 1, r.Code)
	require.Equal(t, "1 acme/orders task exception\n1 replayed, 1 not\n", r.Out)
	require.Equal(t, "pinwheel: replayed too often: dead letter 2 has been replayed 10 times, and 10 is the limit; it takes force to replay it again\n", r.Err)
	await(t, f, 2)
	r = f.Pinwheel("dead", "replay", "2", "--force")
	require.Equal(t, fleettest.Result{Out: "2 acme/orders task exception\n1 replayed\n"}, r)
}

func TestUnreadableLettersAreNamedAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "1")
	require.NoError(t, f.NC.Publish("pinwheel.dead.a.b.task.exception.S.1", []byte("junk")))
	require.NoError(t, f.NC.Flush())
	require.Eventually(t, func() bool { return f.Pinwheel("dead", "ls").Code == 1 }, patience, tick)
	r := f.Pinwheel("dead", "ls")
	require.Contains(t, r.Out, "no prices for 1", "the others are listed")
	require.Contains(t, r.Err, "pinwheel: message 2: not a dead letter")
	r = f.Pinwheel("dead", "rm", "--all", "--dry-run")
	require.Equal(t, 1, r.Code)
	require.Equal(t, fleettest.Result{Out: "2, which cannot be read\n1 removed\n"}, f.Pinwheel("dead", "rm", "2"))
	require.Zero(t, f.Pinwheel("dead", "ls").Code)
}

func TestWhatStrangersSentDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	require.Equal(t, 1, f.Pinwheel("send", "task", "a/b", "--data", "\x1b[2Jhi", "--header", "X=\x1b[31m").Code)
	await(t, f, 1)
	r := f.Pinwheel("dead", "show", "1")
	require.NotContains(t, r.Out, "\x1b")
	require.Contains(t, r.Out, `\u001b[2Jhi`+"\n")
	var letter struct{ Body string }
	require.NoError(t, json.Unmarshal([]byte(f.Pinwheel("dead", "show", "1", "--json").Out), &letter))
	require.Equal(t, "\x1b[2Jhi", letter.Body, "machines get it as it is")

	file := filepath.Join(t.TempDir(), "letters")
	for range 2 { // the second one finds a file that others can read
		require.Zero(t, f.Pinwheel("dead", "export", "--file", file).Code)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoError(t, os.Chmod(file, 0o644))
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}
