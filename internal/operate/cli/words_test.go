package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

func TestVersionIsACommandAndAFlag(t *testing.T) {
	t.Parallel()
	f := alone(t)
	r := f.Pinwheel("--version")
	require.Zero(t, r.Code, r.Err)
	require.Equal(t, f.Pinwheel("version").Out, r.Out)
	var told struct{ Version string }
	require.NoError(t, json.Unmarshal([]byte(f.Pinwheel("version", "--json").Out), &told))
	require.Equal(t, r.Out, "pinwheel "+told.Version+"\n")
	require.Contains(t, f.Pinwheel("--help").Out, "\n  completion ")
}

func TestWrongNamesHaveHints(t *testing.T) {
	t.Parallel()
	f := alone(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"workers", "ls", "--ownr", "a"}, "unknown flag: --ownr; did you mean --owner?\n"},
		{[]string{"deploy", "--dryrun"}, "unknown flag: --dryrun; did you mean --dry-run?\n"},
		{[]string{"serve", "--nothing-like-it"}, "unknown flag: --nothing-like-it\n"},
		{[]string{"dead", "replya"}, "it has ls, show, edit, replay, replays, rm, export, import; did you mean replay or replays?\n"},
		{[]string{"alias", "list"}, "it has ls, set, rm; did you mean ls?\n"},
		{[]string{"kv", "delete"}, "it has ls, get, put, rm; did you mean rm?\n"},
		{[]string{"doctr"}, "pinwheel: doctor\n"},
	} {
		r := f.Pinwheel(c.args...)
		require.Equal(t, 2, r.Code, "%q", c.args)
		require.Contains(t, r.Err, c.want, "%q", c.args)
	}
}

// withoutJSON are the commands that print no facts, or facts that are a file in a format of its own.
var withoutJSON = []string{"console", "dev", "serve", "dead export", "schema manifest", "types", "completion bash",
	"completion fish", "completion powershell", "completion zsh"}

func TestEveryCommandThatPrintsFactsPrintsJSON(t *testing.T) {
	t.Parallel()
	f := alone(t)
	found := 0
	var walk func(command []string)
	walk = func(command []string) {
		text := f.Pinwheel(append(slices.Clone(command), "--help")...).Out
		_, list, group := strings.Cut(text, "Available Commands:\n")
		if !group {
			found++
			name := strings.Join(command, " ")
			require.Equal(t, !slices.Contains(withoutJSON, name), strings.Contains(text, "--json "), name)
			return
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if name := strings.Fields(line)[0]; name != "help" {
				walk(append(slices.Clone(command), name))
			}
		}
	}
	walk(nil)
	require.Greater(t, found, 45)
}

// factOf runs a command with --json, and returns its object.
func factOf(t *testing.T, f *fleettest.Fleet, args ...string) map[string]any {
	t.Helper()
	r := f.Pinwheel(append(args, "--json")...)
	fact := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(r.Out), &fact), "%v: %s%s", args, r.Out, r.Err)
	return fact
}

func TestChangesAreFacts(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	save := func(body string) {
		require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: () => new Response("`+body+`"),
  task() { throw new Error("no") } }`), 0o600))
		f.Deploy(t, path, "--owner", "acme")
	}
	save("one")
	save("two")

	fact := factOf(t, f, "send", "fetch", "acme/w")
	require.Equal(t, "two", fact["body"])
	require.EqualValues(t, 200, fact["status"])
	require.Equal(t, true, fact["ok"])
	require.Equal(t, "seven", factOf(t, f, "send", "task", "acme/w", "--no-wait", "--id", "seven")["eventId"])
	require.EqualValues(t, 3, factOf(t, f, "owners", "set", "acme", "--weight", "3")["weight"])
	require.Equal(t, "acme", factOf(t, f, "owners", "rm", "acme")["owner"])
	require.Contains(t, factOf(t, f, "versions", "diff", "acme/w", "1", "2")["code"], `+  fetch: () => new Response("two")`)

	require.Equal(t, "ALIAS  VERSION\n", f.Pinwheel("alias", "ls", "acme/w").Out)
	require.Zero(t, f.Pinwheel("rollback", "acme/w", "--message", "orders were lost").Code)
	require.Zero(t, f.Pinwheel("alias", "set", "acme/w", "next", "2").Code)
	require.Regexp(t, `^ALIAS +VERSION\nnext +2-[0-9a-f]{12}\n$`, f.Pinwheel("alias", "ls", "acme/w").Out)
	require.Equal(t, "next", factOf(t, f, "alias", "ls", "acme/w")["alias"])
	require.Regexp(t, `(?m)^4 .* alias next is 2-[0-9a-f]{12}$\n^3 .* orders were lost$`,
		f.Pinwheel("deployments", "ls", "acme/w").Out, "what was said of the rollback is not about the alias")

	for _, args := range [][]string{
		{"promote", "acme/w", "99"}, {"rollback", "acme/w", "99"},
		{"alias", "set", "acme/w", "x", "99"}, {"versions", "show", "acme/w", "99"},
	} {
		r := f.Pinwheel(args...)
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Err, "no such version", args)
		require.Contains(t, r.Err, "; 'pinwheel versions ls acme/w' lists them\n", args)
	}
	require.Contains(t, f.Pinwheel("alias", "rm", "acme/w", "no").Err,
		`there is no alias "no"; 'pinwheel alias ls acme/w' lists them`)
	require.Contains(t, f.Pinwheel("promote", "acme/x", "1").Err, "'pinwheel workers ls' lists them")
	versions := f.Pinwheel("versions", "ls", "acme/w").Out
	require.Regexp(t, `\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) `, versions, "a time has its zone")
	require.Equal(t, "acme/w", factOf(t, f, "workers", "rm", "acme/w")["worker"])
}

func TestAnEditedBodyStaysJSON(t *testing.T) {
	f := fleettest.Start(t)
	makeDeadLetters(t, f, "7")
	r := f.Pinwheel("dead", "edit", "1", "--data", "{\n  \"id\": 8,\n}")
	require.Equal(t, 2, r.Code, r.Err)
	require.Contains(t, r.Err, "the body of 1 is JSON, and the new one is not: invalid character '}' looking for beginning of object key string in line 3, column 1; --any-body stores it")
	r = f.Pinwheel("dead", "replay", "1", "--data", "{")
	require.Equal(t, 2, r.Code, r.Err)
	require.Contains(t, r.Err, "the new one is not: unexpected end of JSON input in line 1")
	t.Setenv("VISUAL", `sh -c 'echo "{]" > "$1"' edit`)
	r = f.Pinwheel("dead", "edit", "1")
	require.Equal(t, 1, r.Code, r.Err)
	require.Contains(t, r.Err, "nothing is changed, and --any-body stores it")
	require.EqualValues(t, 2, factOf(t, f, "dead", "edit", "1", "--data", "{]", "--any-body")["id"])
}
