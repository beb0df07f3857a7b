package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// pulseEvery is how often a process checks that its NATS server answers.
	pulseEvery = time.Second
	// pulseWait is how long the server may take to answer. A connection to a server that hangs stays open for minutes.
	pulseWait = 3 * time.Second
)

// pulse knows whether the NATS server answers.
type pulse struct {
	nc *nats.Conn

	mu     sync.Mutex
	silent time.Time // since when the server has not answered; zero: it answers
}

// run checks the server until ctx is done.
func (p *pulse) run(ctx context.Context) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case asked := <-tick.C:
			wait, cancel := context.WithTimeout(ctx, pulseWait)
			err := p.nc.FlushWithContext(wait)
			cancel()
			p.heard(asked, err == nil)
		}
	}
}

func (p *pulse) heard(asked time.Time, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case answered:
		p.silent = time.Time{}
	case p.silent.IsZero():
		p.silent = asked
	}
}

// check returns nil while the server answers.
func (p *pulse) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent.IsZero() {
		return nil
	}
	return fmt.Errorf("NATS has not answered since %s", p.silent.UTC().Format(time.RFC3339))
}

// runParts runs what works until work is done. The function that it returns ends what counts attempts: it is called
// when no attempt runs any more, which is later if DrainTimeout interrupts some.
func (p *Process) runParts(work context.Context, running *sync.WaitGroup) (endCounts func()) {
	counts, endCounts := context.WithCancel(context.WithoutCancel(work))
	run := func(ctx context.Context, parts ...func(context.Context)) {
		for _, part := range parts {
			running.Go(func() { part(ctx) })
		}
	}
	run(work, p.census.tell, p.announce, p.link.pulse.run, p.scale.run, rollouts{p}.run, resets{p}.hear,
		canceller{p}.fleet().Hear)
	run(counts, p.onlookers.runs.Run, p.usage.Run)
	return endCounts
}
