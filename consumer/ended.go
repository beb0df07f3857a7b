package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// doubtful reports whether another process may have been given h meanwhile, and have ended it: because h was delivered
// before, or because the server had not heard of this process for nearly as long as a lease.
func (c *Consumer) doubtful(h *held) bool {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return h.event.Origin.Deliveries > 1 || h.absences != c.absences.Load() || time.Since(h.renewed) > c.longAbsence()
}

// longAbsence is the time without renewals after which leases may be over.
func (c *Consumer) longAbsence() time.Duration { return c.cfg.AckWait * 2 / 3 }

// ifThere calls then on the settle goroutine if the stream has h still. Else it has ended elsewhere, was acked, and is forgotten here: what is
// acked must not be dead as well.
func (c *Consumer) ifThere(h *held, then func()) {
	c.lookUpBy(h.from.stream, stored.Request{Seq: h.event.Origin.Seq}, func(m *storedMsg, err error) {
		c.do(func() {
			switch {
			case err != nil:
				c.log.Warn().Err(err).Str("event", h.event.ID).Msg("it could not be looked up whether an event has ended elsewhere; trying again")
				c.after(h.tries, func() { c.ifThere(h, then) })
			case m != nil && m.Time.Equal(h.stored): // else it is of a stream that was made again
				then()
			default:
				c.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event failed for good, but has ended elsewhere meanwhile; no dead letter")
				h.tries = nil
				c.table.remove(h)
			}
		})
	})
}
