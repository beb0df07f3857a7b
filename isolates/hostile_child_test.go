package isolates

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Environment variables of the child process of a script that costs its process a thread.
const (
	childScript = "PINWHEEL_HOSTILE_SCRIPT" // its name
	childReport = "PINWHEEL_HOSTILE_REPORT" // file for the ordeal
)

// TestHostileChild is the body of such a process: it runs one script and reports the result.
func TestHostileChild(t *testing.T) {
	name := os.Getenv(childScript)
	if name == "" {
		t.Skip("only in a process that TestHostile starts")
	}
	scripts := readScripts(t)
	i := slices.IndexFunc(scripts, func(s script) bool { return s.name == name })
	require.GreaterOrEqual(t, i, 0)
	s := &scripts[i]
	r, err := newArena(t).suffer(s) // the pool ends with the process
	require.NoError(t, err)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(os.Getenv(childReport), text, 0o600))
}

// sufferApart runs a script in its own process. The process ends, and with it the thread that the script took.
func sufferApart(t *testing.T, s *script) (r ordeal, err error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	report := filepath.Join(t.TempDir(), "report")
	child := exec.CommandContext(ctx, self, "-test.run=^TestHostileChild$")
	child.Env = append(os.Environ(), childScript+"="+s.name, childReport+"="+report)
	out, err := child.CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("its process: %w\n%s", err, bytes.TrimSpace(out[max(0, len(out)-4000):]))
	}
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	return r, json.Unmarshal(text, &r)
}
