package guarantees_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// betweenCells is the longest time between two kills of cells.
const betweenCells = 600 * time.Millisecond

// killCells kills cells at random, until ctx is done.
func (b *breaker) killCells(ctx context.Context, random *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.Int64N(int64(betweenCells)))):
		}
		all := b.cells(random.IntN(len(b.fleet)))
		which := random.Int()
		if len(all) == 0 {
			b.count("times when a process had no cell to kill")
			continue
		}
		mended := b.model.broken("kill cell")
		if syscall.Kill(all[which%len(all)], syscall.SIGKILL) == nil { // otherwise it has ended
			b.count("kills of cells")
		}
		mended()
	}
}

// cells are the IDs of the cells of a process: they are its children without arguments. So is one that checks a module:
// its deploy fails when it is killed, and nothing else.
func (b *breaker) cells(who int) (list []int) {
	if !b.busy[who].TryLock() { // it is being started or ended
		return nil
	}
	defer b.busy[who].Unlock()
	parent := strconv.Itoa(b.fleet[who].cmd.Process.Pid)
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != parent {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && strings.Count(string(command), "\x00") == 1 {
			list = append(list, pid)
		}
	}
	return list
}
