package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
)

const (
	// emptyGrace is how long a starting process waits for a bucket that has lost workers to get them back. After that
	// it takes events without them.
	emptyGrace = 5 * time.Minute
	// emptyLook is how often it checks.
	emptyLook = time.Second
)

// census knows whether the bucket has lost workers.
type census struct {
	nc      *nats.Conn
	subject string // on which new processes ask
	store   *deploy.Store
	watcher *deploy.Watcher
	log     zerolog.Logger

	missing atomic.Pointer[error] // why the process takes no events yet; set if the bucket has lost workers
}

func newCensus(nc *nats.Conn, prefix string, d *deployed, log zerolog.Logger) *census {
	return &census{nc: nc, subject: prefix + ".control.installed", store: d.store, watcher: d.watcher, log: log}
}

// check returns nil unless the process waits for lost workers.
func (c *census) check() error {
	if missing := c.missing.Load(); missing != nil {
		return *missing
	}
	return nil
}

// tell answers new processes how many workers run here. It runs until ctx is done.
func (c *census) tell(ctx context.Context) {
	sub, err := c.nc.Subscribe(c.subject,
		func(m *nats.Msg) { _ = m.Respond([]byte(strconv.Itoa(c.watcher.Installed()))) })
	if err != nil {
		c.log.Warn().Err(err).Msg("new processes cannot ask how many workers run here")
		return
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
}

// await keeps a new process from taking events while the bucket seems to have lost workers. Without the workers, their
// events would become dead letters. The events wait in their stream. It gives up after emptyGrace.
func (c *census) await(ctx context.Context) {
	give := time.Now().Add(emptyGrace)
	told := false
	for ctx.Err() == nil && time.Now().Before(give) {
		err := c.workersAreThere(ctx)
		c.missing.Store(&err)
		if err == nil {
			return
		}
		if !told {
			told = true
			c.log.Error().Err(err).Stringer("at_most", emptyGrace).Msg("this process does not take events yet: restore the bucket, or deploy the workers again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(emptyLook):
		}
	}
	var none error
	c.missing.Store(&none)
	if told && ctx.Err() == nil {
		c.log.Error().Msg("workers are still missing: their events fail from now on")
	}
}

// workersAreThere returns an error if the bucket seems to have lost workers.
func (c *census) workersAreThere(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	emptied, err := c.store.Emptied(ctx)
	if err == nil && emptied {
		return errors.New("the worker bucket was emptied: it had records, and has neither one nor a marker of a removal")
	}
	m, err := c.nc.RequestWithContext(ctx, c.subject, nil)
	if err != nil { // there is no other process
		return nil
	}
	if n, err := strconv.Atoi(string(m.Data)); err == nil && n > c.watcher.Installed() {
		return fmt.Errorf("another process runs %d workers, and the bucket has %d", n, c.watcher.Installed())
	}
	return nil
}
