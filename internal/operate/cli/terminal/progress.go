package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// progressAfter is how long something takes before a terminal says that it is under way.
const progressAfter = time.Second

// During says on a terminal what is under way, while f runs, once that takes longer than a second. f prints nothing.
func (t *Terminal) During(what string, f func() error) error {
	if !config.IsTerminal(t.Raw.Err) {
		return f()
	}
	p := &underWay{out: t.Raw.Err, what: config.PrintableText(what), began: time.Now()}
	p.mu.Lock()
	p.timer = time.AfterFunc(progressAfter, p.tell)
	p.mu.Unlock()
	defer p.end()
	return f()
}

// underWay is a line about something that goes on. Its end removes it.
type underWay struct {
	out   io.Writer
	what  string
	began time.Time
	timer *time.Timer

	mu    sync.Mutex
	shown bool
	ended bool
}

func (p *underWay) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.shown = true
	fmt.Fprintf(p.out, "\r%s, %.0f s …\x1b[K", p.what, time.Since(p.began).Seconds())
	p.timer.Reset(time.Second)
}

func (p *underWay) end() {
	p.timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; p.shown {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}
