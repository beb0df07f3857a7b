package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// emptyGrace is how long a starting process waits for a bucket that has lost workers to get them back. After that
	// it takes events without them.
	emptyGrace = 5 * time.Minute
	// emptyLook is how often it checks.
	emptyLook = time.Second
)

func (p *Process) installedSubject() string { return p.cfg.Prefix + ".control.installed" }

// tellInstalled answers new processes how many workers run here. It runs until ctx is done.
func (p *Process) tellInstalled(ctx context.Context) {
	sub, err := p.nc.Subscribe(p.installedSubject(),
		func(m *nats.Msg) { _ = m.Respond([]byte(strconv.Itoa(p.watcher.Installed()))) })
	if err != nil {
		p.log.Warn().Err(err).Msg("new processes cannot ask how many workers run here")
		return
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
}

// awaitWorkers keeps a new process from taking events while the bucket seems to have lost workers. Without the workers,
// their events would become dead letters. The events wait in their stream. It gives up after emptyGrace.
func (p *Process) awaitWorkers(ctx context.Context) {
	give := time.Now().Add(emptyGrace)
	told := false
	for ctx.Err() == nil && time.Now().Before(give) {
		err := p.workersAreThere(ctx)
		p.missing.Store(&err)
		if err == nil {
			return
		}
		if !told {
			told = true
			p.log.Error().Err(err).Stringer("at_most", emptyGrace).Msg("this process does not take events yet: restore the bucket, or deploy the workers again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(emptyLook):
		}
	}
	var none error
	p.missing.Store(&none)
	if told && ctx.Err() == nil {
		p.log.Error().Msg("workers are still missing: their events fail from now on")
	}
}

// workersAreThere returns an error if the bucket seems to have lost workers.
func (p *Process) workersAreThere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	emptied, err := p.store.Emptied(ctx)
	if err == nil && emptied {
		return errors.New("the worker bucket was emptied: it had records, and has neither one nor a marker of a removal")
	}
	m, err := p.nc.RequestWithContext(ctx, p.installedSubject(), nil)
	if err != nil { // there is no other process
		return nil
	}
	if n, err := strconv.Atoi(string(m.Data)); err == nil && n > p.watcher.Installed() {
		return fmt.Errorf("another process runs %d workers, and the bucket has %d", n, p.watcher.Installed())
	}
	return nil
}
