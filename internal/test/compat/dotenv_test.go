package compat_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/env/dotenv"
)

// dotenvReadsTheSame reads random texts made of parts by the function read of script, which uses the npm packages that
// wrangler uses, and by ours. Ours refuses lines that dotenv skips.
func dotenvReadsTheSame(t *testing.T, parts []string, script string, ours func(text string) (*dotenv.Vars, error)) {
	dir := packages(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const n = 20_000
	var texts []string
	var got []map[string]string
	var in bytes.Buffer
	for range n {
		text := ""
		for range 1 + r.IntN(10) {
			text += parts[r.IntN(len(parts))]
		}
		if vars, err := ours(text); err == nil {
			texts, got = append(texts, text), append(got, vars.Map())
			require.NoError(t, json.NewEncoder(&in).Encode(text))
		}
	}
	require.Greater(t, len(texts), n/20)
	c := exec.CommandContext(t.Context(), "node", "-e", script+`
for (const line of require("fs").readFileSync(0, "utf8").trimEnd().split("\n")) console.log(JSON.stringify(read(JSON.parse(line))));`)
	c.Dir, c.Stdin = dir, &in
	out, err := c.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(texts))
	for i, text := range texts {
		want := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &want))
		if len(want) == 0 {
			require.Empty(t, got[i], "%q", text)
			continue
		}
		require.Equal(t, want, got[i], "%q", text)
	}
}

func TestDotenvReadsTheSame(t *testing.T) {
	t.Parallel()
	dotenvReadsTheSame(t, []string{
		"A", "B_1", "=", "=", "\n", "\n", " ", "'", "\"", "`", `\n`, `\`, "#", "x", "$V", "export ", ": ", "A=", "B='", "'\n",
		"\"\n", "é",
	}, `const { parse: read } = require("dotenv");`, dotenv.Parse)
}

// What dotenv-expand would not end with, ours refuses.
func TestDotenvExpandsTheSame(t *testing.T) {
	t.Parallel()
	dotenvReadsTheSame(t, []string{
		"A=", "B=", "C=", "\nA=", "\nB=", "\nC=", "\nD='", "'\n", "$A", "$B", "${A}", "${B}", "${C:-x}", "${A-", "${B:+y}",
		"${A+", "}", "$", "$$", "$&", `\$A`, `\`, "x", "-", "+", ":",
	}, `const { parse } = require("dotenv"), { expand } = require("dotenv-expand");
const read = (text) => expand({ processEnv: {}, parsed: parse(text) }).parsed;`, func(text string) (*dotenv.Vars, error) {
		vars, err := dotenv.Parse(text)
		if err == nil {
			err = vars.Expand()
		}
		return vars, err
	})
}
