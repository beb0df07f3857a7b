package consumer

import (
	"sync/atomic"
	"time"
)

// clock tells the time of NATS, which is the one that the processes of a fleet share: by it JetStream says when an event was stored, and when one
// is due that waits. A process's own clock may be wrong by minutes, and be set while events wait; between two looks at that of the server only
// the time that passes counts, which no setting of a clock changes. Its zero value tells the time of this process.
type clock struct{ last atomic.Pointer[reading] }

// reading is a look at the clock of the server.
type reading struct{ server, own time.Time }

// clockPatience is how long a look may take that is believed when there has been one before.
const clockPatience = time.Second

// read notes that it was server's time at the server at some time between asked and answered.
func (k *clock) read(server, asked, answered time.Time) {
	if server.IsZero() || k.last.Load() != nil && answered.Sub(asked) > clockPatience {
		return
	}
	k.last.Store(&reading{server, asked.Add(answered.Sub(asked) / 2)})
}

// now is the time at the server.
func (k *clock) now() time.Time { return k.at(time.Now()) }

// at is the time at the server when it is own here.
func (k *clock) at(own time.Time) time.Time {
	r := k.last.Load()
	if r == nil {
		return own
	}
	return r.server.Add(own.Sub(r.own))
}

// own is what a timer of this process waits for when it waits for a time at the server, or at a publisher whose clock is right.
func (k *clock) own(server time.Time) time.Time {
	now := time.Now()
	return now.Add(server.Sub(k.at(now)))
}
