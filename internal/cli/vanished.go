package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// emptyGrace is how long a process that starts waits for a bucket that has lost workers to get them back, before it takes events without them.
	emptyGrace = 5 * time.Minute
	// emptyLook is how often it looks.
	emptyLook = time.Second
)

func (f *fleet) installedSubject() string { return f.cfg.Prefix + ".control.installed" }

// tellInstalled tells processes that start how many workers run here, until ctx is done.
func (f *fleet) tellInstalled(ctx context.Context) {
	sub, err := f.nc.Subscribe(f.installedSubject(), func(m *nats.Msg) { _ = m.Respond([]byte(strconv.Itoa(f.watcher.Installed()))) })
	if err != nil {
		f.log.Warn().Err(err).Msg("processes that start are not told which workers run here")
		return
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
}

// awaitWorkers holds a process that starts from taking events while the bucket seems to have lost workers: its events would be dead letters for
// want of them. They wait where they are stored. It gives up after emptyGrace.
func (f *fleet) awaitWorkers(ctx context.Context) {
	give := time.Now().Add(emptyGrace)
	told := false
	for ctx.Err() == nil && time.Now().Before(give) {
		err := f.workersAreThere(ctx)
		f.missing.Store(&err)
		if err == nil {
			return
		}
		if !told {
			told = true
			f.log.Error().Err(err).Stringer("at_most", emptyGrace).Msg("this process does not take events yet: restore the bucket, or deploy the workers again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(emptyLook):
		}
	}
	var none error
	f.missing.Store(&none)
	if told && ctx.Err() == nil {
		f.log.Error().Msg("workers are still missing: their events fail from now on")
	}
}

// workersAreThere is nil unless the bucket has lost workers, as far as can be told.
func (f *fleet) workersAreThere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	emptied, err := f.store.Emptied(ctx)
	if err == nil && emptied {
		return errors.New("the worker bucket was emptied: it had records, and has neither one nor a marker of a removal")
	}
	m, err := f.nc.RequestWithContext(ctx, f.installedSubject(), nil)
	if err != nil { // there is no other process
		return nil
	}
	if n, err := strconv.Atoi(string(m.Data)); err == nil && n > f.watcher.Installed() {
		return fmt.Errorf("another process runs %d workers, and the bucket has %d", n, f.watcher.Installed())
	}
	return nil
}
