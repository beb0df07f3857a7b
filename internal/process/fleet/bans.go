package fleet

import (
	"context"
	"encoding/json"
	"slices"
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
	subjects := [2]string{
		p.cfg.Prefix + ".control.bars", // the name on the wire stays: processes of the last release send it
		p.cfg.Prefix + ".control.direct-bans",
	}
	crashes := p.rooms.dispatch.Crashes()
	for i, subject := range subjects {
		sub, err := p.link.nc.Subscribe(subject, func(m *nats.Msg) {
			var all []dispatch.Ban
			if len(m.Data) > 0 && json.Unmarshal(m.Data, &all) == nil {
				crashes.HearBans(slices.DeleteFunc(all, func(b dispatch.Ban) bool { return b.Direct != (i == 1) }))
			}
		})
		if err != nil {
			p.log.Warn().Err(err).Msg("reports of refused workers cannot be received")
			return
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	tell := func() {
		var of [2][]dispatch.Ban
		for _, b := range crashes.Bans() {
			i := 0
			if b.Direct {
				i = 1
			}
			of[i] = append(of[i], b)
		}
		for i, all := range of {
			for bans := range slices.Chunk(all, maxBans) {
				if text, err := json.Marshal(bans); err == nil {
					_ = p.link.nc.Publish(subjects[i], text) // not connected: the next message reports it
				}
			}
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
