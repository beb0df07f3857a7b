package consumer

import (
	"context"
	"time"
)

// leaseLoop renews the leases of all held events: one ticker for all, a message for each that the
// server has not heard of for a third of AckWait.
func (c *Consumer) leaseLoop(life context.Context) {
	third := c.cfg.AckWait / 3
	tick := time.NewTicker(third / 2)
	defer tick.Stop()
	var due []string
	last := time.Now()
	for {
		before := third / 2
		select {
		case <-life.Done():
			return
		case <-tick.C:
		case <-c.renew: // connected again: all at once, some leases are nearly over
			before = 0
		}
		if !c.nc.IsConnected() {
			continue
		}
		now := time.Now()
		if now.Sub(last) > c.longAbsence() {
			c.absences.Add(1)
		}
		last = now
		due = c.table.due(now.Add(-before), now, due[:0])
		for _, subject := range due {
			if err := c.nc.Publish(subject, progressBody); err != nil {
				c.log.Warn().Err(err).Msg("leases could not be renewed")
				break
			}
		}
		c.metrics.renewals.Add(float64(len(due)))
		clear(due)
	}
}
