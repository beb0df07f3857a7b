package compat_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/dotenv"
)

// Each file that our parser takes has the values that the npm package dotenv gives it, which wrangler uses. Ours
// refuses lines that dotenv skips.
func TestDotenvReadsTheSame(t *testing.T) {
	dir := packages(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	parts := []string{
		"A", "B_1", "=", "=", "\n", "\n", " ", "'", "\"", "`", `\n`, `\`, "#", "x", "$V", "export ", ": ", "A=", "B='", "'\n", "\"\n", "é",
	}
	texts := make([]string, 20_000)
	var in bytes.Buffer
	for i := range texts {
		for range 1 + r.IntN(10) {
			texts[i] += parts[r.IntN(len(parts))]
		}
		require.NoError(t, json.NewEncoder(&in).Encode(texts[i]))
	}
	c := exec.CommandContext(t.Context(), "node", "-e", `const { parse } = require("dotenv");
for (const line of require("fs").readFileSync(0, "utf8").trimEnd().split("\n")) console.log(JSON.stringify(parse(JSON.parse(line))));`)
	c.Dir, c.Stdin = dir, &in
	out, err := c.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(texts))
	taken := 0
	for i, text := range texts {
		got, err := dotenv.Parse(text)
		if err != nil {
			continue
		}
		taken++
		want := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &want))
		require.Equal(t, want, got, "%q", text)
	}
	require.Greater(t, taken, len(texts)/20)
}
