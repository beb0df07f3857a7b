package fleet

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/dispatch"
)

// bansEvery is how often a process reports to the others which workers it refuses, if it refuses any. A new process
// knows them after that time.
const bansEvery = time.Second

// maxBans is the highest number of bans in one message.
const maxBans = 1000

// exchangeBans reports to the other processes which workers this one refuses because they cost it threads. It also
// takes their reports. It runs until ctx is done. Without it, a worker that ended one process could end the next one.
func (p *Process) exchangeBans(ctx context.Context) {
	subject := p.cfg.Prefix + ".control.bars" // the name on the wire stays: processes of the last release send it
	sub, err := p.nc.Subscribe(subject, func(m *nats.Msg) {
		var all []dispatch.Ban
		if len(m.Data) > 0 && json.Unmarshal(m.Data, &all) == nil {
			p.dispatch.HearBans(all)
		}
	})
	if err != nil {
		p.log.Warn().Err(err).Msg("reports of refused workers cannot be received")
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	tell := func() {
		all := p.dispatch.Bans()
		for len(all) > 0 {
			n := min(len(all), maxBans)
			if text, err := json.Marshal(all[:n]); err == nil {
				_ = p.nc.Publish(subject, text) // not connected: the next message reports it
			}
			all = all[n:]
		}
	}
	defer tell() // for the process that replaces this one
	tick := time.NewTicker(bansEvery)
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
