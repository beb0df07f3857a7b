//go:build breach && linux

package breach_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

// openCells starts a fleet whose owners have a cell each, except gamma, who runs in the fleet's process. beta and gamma
// are attacked.
func openCells(t *testing.T) *scene {
	t.Helper()
	s := openScene(t, breach.Aims{Descriptors: 100, Mebibytes: 6 << 10, Threads: 1000}, "PINWHEEL_PROCESSES=1",
		"PINWHEEL_CONFINE=require", "PINWHEEL_CELL=own", "PINWHEEL_CELL_CONFINE=require", "PINWHEEL_HEAP_MAX=512MiB",
		"PINWHEEL_ADMIN_ADDR=127.0.0.1:0")
	s.wait = time.Second
	s.pinwheel("", "owners", "set", "gamma", "--cell", "shared")
	s.pinwheel(s.loot.Secret, "secrets", "set", "gamma", "KEY")
	s.deployVictim("gamma")
	require.NoError(t, s.victim("gamma"))
	return s
}

// undisturbed asks the workers of beta and gamma all the time while attack runs: they answer, each time.
func (s *scene) undisturbed(attack func()) {
	s.t.Helper()
	var asking sync.WaitGroup
	over := make(chan struct{})
	for _, owner := range []string{"beta", "gamma"} {
		asking.Go(func() {
			for n := 1; ; n++ {
				if err := s.victim(owner); err != nil {
					s.t.Errorf("question %d to %s: %v", n, owner, err)
					return
				}
				select {
				case <-over:
					s.t.Logf("the worker of %s answered %d times", owner, n)
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	defer asking.Wait()
	defer close(over)
	attack()
}

// cells are the IDs of the processes of cells: of all that the fleet has started, they have no arguments, and more
// filters than others.
func (s *scene) cells() (list []int) {
	s.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(s.t, err)
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[1] == strconv.Itoa(s.p.PID()) && strings.Count(string(command), "\x00") == 1 {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(s.t, err)
			list = append(list, pid)
		}
	}
	return list
}

// lies is how many cells were ended because of what they sent.
func (s *scene) lies() float64 { return s.p.Metric("pinwheel_cell_ends_total", "how", "lie") }

// In a cell, a guest that has broken V8 reaches what it has itself, and nothing of others. What it writes to all that
// it has inherited ends its cell.
func TestGuestsOfACell(t *testing.T) {
	t.Parallel()
	s := openCells(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own := breach.Try(ctx, s.url, s.aims, s.table[:1])
	require.True(t, own[0].Reached, "%+v", own)
	pids := s.cells()
	require.Len(t, pids, 2, "acme's and beta's")
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		require.NoError(t, err)
		for _, line := range []string{`NoNewPrivs:\s+1`, `Seccomp:\s+2`, `CapEff:\s+0+`, `CapPrm:\s+0+`} {
			require.Regexp(t, "(?m)^"+line+"$", string(status))
		}
	}
	s.undisturbed(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
		defer cancel()
		for _, r := range breach.Try(ctx, s.url, s.aims, s.table) {
			t.Logf("%-40s reached %-5t result %d, %d texts, %q %v", r.Attempt.Name, r.Reached, r.Answer.Result,
				len(r.Answer.Texts), r.Answer.Error, r.Err)
			require.Equal(t, r.Attempt.Name == breach.OwnText, r.Reached, r.Attempt.Name)
			if !strings.HasPrefix(r.Attempt.Name, "take ") && r.Attempt.Name != s.table[len(s.table)-1].Name {
				require.NoError(t, r.Err, "%s: a refusal is not the end of the cell", r.Attempt.Name)
			}
		}
	})
	require.Positive(t, s.lies())
}
