//go:build !linux

package machine

import "time"

// exactTimers does nothing: only Linux lets a thread choose how late its timers may be.
func exactTimers() (back func()) { return func() {} }

// rest sleeps for d, and for up to a millisecond longer: Go's timers are that late.
func rest(d time.Duration) { time.Sleep(d) }
