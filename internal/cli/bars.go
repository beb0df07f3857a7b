package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/dispatch"
)

// barsEvery is how often a process tells the others whose events it refuses, while there are any. A process that starts knows within that time.
const barsEvery = time.Second

// maxBars bounds the bars in one message.
const maxBars = 1000

// tellBars tells the other processes whose events are refused because they have cost threads, and hears them, until ctx is done: or whoever takes down one
// process would begin anew with the next.
func (f *fleet) tellBars(ctx context.Context) {
	subject := f.cfg.Prefix + ".control.bars"
	sub, err := f.nc.Subscribe(subject, func(m *nats.Msg) {
		var all []dispatch.Bar
		if len(m.Data) > 0 && json.Unmarshal(m.Data, &all) == nil {
			f.dispatch.HearBars(all)
		}
	})
	if err != nil {
		f.log.Warn().Err(err).Msg("what others refuse is not heard")
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	tell := func() {
		all := f.dispatch.Bars()
		for len(all) > 0 {
			n := min(len(all), maxBars)
			if text, err := json.Marshal(all[:n]); err == nil {
				_ = f.nc.Publish(subject, text) // not connected: the next one tells
			}
			all = all[n:]
		}
	}
	defer tell() // for the one that takes this one's place
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
