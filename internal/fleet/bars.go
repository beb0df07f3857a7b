package fleet

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/dispatch"
)

// barsEvery is how often a process reports to the others which workers it refuses, if it refuses any. A new process
// knows them after that time.
const barsEvery = time.Second

// maxBars is the highest number of bars in one message.
const maxBars = 1000

// tellBars reports to the other processes which workers this one refuses because they cost it threads. It also takes
// their reports. It runs until ctx is done. Without it, a worker that ended one process could end the next one.
func (p *Process) tellBars(ctx context.Context) {
	subject := p.cfg.Prefix + ".control.bars"
	sub, err := p.nc.Subscribe(subject, func(m *nats.Msg) {
		var all []dispatch.Bar
		if len(m.Data) > 0 && json.Unmarshal(m.Data, &all) == nil {
			p.dispatch.HearBars(all)
		}
	})
	if err != nil {
		p.log.Warn().Err(err).Msg("reports of refused workers cannot be received")
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	tell := func() {
		all := p.dispatch.Bars()
		for len(all) > 0 {
			n := min(len(all), maxBars)
			if text, err := json.Marshal(all[:n]); err == nil {
				_ = p.nc.Publish(subject, text) // not connected: the next message reports it
			}
			all = all[n:]
		}
	}
	defer tell() // for the process that replaces this one
	tick := time.NewTicker(barsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tell()
		}
	}
}
