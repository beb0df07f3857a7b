package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// bar shows the progress: on a terminal as a bar that is redrawn, elsewhere as one line for each finished run.
type bar struct {
	out      *os.File
	terminal bool

	mu    sync.Mutex
	drawn time.Time
	done  int
	all   int
	what  string
}

func newBar(out *os.File) *bar { return &bar{out: out, terminal: isatty.IsTerminal(out.Fd())} }

// begin starts a run: case i of n in a round.
func (b *bar) begin(round, rounds, i, n int, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.all = round*n+i, rounds*n
	b.what = fmt.Sprintf("round %d/%d  %s", round+1, rounds, name)
}

// redraw is the minimum time between two drawings.
const redraw = 100 * time.Millisecond

// barWidth is the width in characters.
const barWidth = 24

// count shows n of all in the current run. It may be called often.
func (b *bar) count(what string, n, all int) {
	if !b.terminal {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.drawn) < redraw {
		return
	}
	b.drawn = time.Now()
	part := (float64(b.done) + min(1, float64(n)/float64(max(1, all)))) / float64(max(1, b.all))
	full := int(part * barWidth)
	fmt.Fprintf(b.out, "\r\x1b[K[%s%s] %3.0f %%  %s  %s %d/%d", strings.Repeat("=", full),
		strings.Repeat(" ", barWidth-full), 100*part, b.what, what, n, all)
}

// end ends a run and prints its result.
func (b *bar) end(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terminal {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	if line != "" {
		fmt.Fprintf(b.out, "%s: %s\n", b.what, line)
	}
}
