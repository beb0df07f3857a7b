package jsapi

import (
	"sync/atomic"
	"time"
)

// Clock returns the time of NATS, which the processes of a fleet share. JetStream uses it for the time at which an
// event was stored, and at which a waiting event is due. A process's own clock may be wrong by minutes, and may be set
// while events wait. Between two readings of the server's clock only elapsed time counts, which setting a clock does
// not change. The zero Clock returns the time of this process.
type Clock struct{ last atomic.Pointer[reading] }

// reading is a reading of the server's clock.
type reading struct{ server, own time.Time }

// clockPatience is the maximum duration of a reading that replaces an earlier one.
const clockPatience = time.Second

// Read notes that the server's clock showed server at some time between asked and answered.
func (k *Clock) Read(server, asked, answered time.Time) {
	if server.IsZero() || k.last.Load() != nil && answered.Sub(asked) > clockPatience {
		return
	}
	k.last.Store(&reading{server, asked.Add(answered.Sub(asked) / 2)})
}

// Now is the time at the server.
func (k *Clock) Now() time.Time { return k.At(time.Now()) }

// At is the time at the server when this process's clock shows own.
func (k *Clock) At(own time.Time) time.Time {
	r := k.last.Load()
	if r == nil {
		return own
	}
	return r.server.Add(own.Sub(r.own))
}

// Own is the time by this process's clock for a time at the server, or at a publisher whose clock is right. Timers use
// it.
func (k *Clock) Own(server time.Time) time.Time {
	now := time.Now()
	return now.Add(server.Sub(k.At(now)))
}
