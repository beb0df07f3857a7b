package storage

import (
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
)

// sharedStreams are those in which each owner keeps to its share: beyond it, its oldest messages are removed.
var sharedStreams = [...]string{events.StreamDead, events.StreamResults, events.StreamBodies, events.StreamRuns}

// Removed is about how many messages processes would remove from a stream if it had that limit of bytes. owners has the
// number of messages of each owner. shared is false for a stream in which owners have no shares.
func Removed(stream string, owners map[string]uint64, bytes, limit uint64) (messages uint64, shared bool) {
	if !slices.Contains(sharedStreams[:], stream) {
		return 0, false
	}
	all := uint64(0)
	for _, n := range owners {
		all += n
	}
	if all == 0 || limit == 0 {
		return 0, true
	}
	l, mean, seq := &ledger{}, max(1, bytes/all), uint64(0)
	for owner, n := range owners {
		for range n {
			seq++
			l.add(owner, seq, mean, limit/shareGrain)
		}
	}
	for { // as a process does, look by look
		list := l.overdrafts(l.bytes, limit)
		if len(list) == 0 {
			return messages, true
		}
		before := l.bytes
		for _, o := range list {
			l.cut(o.owner, o.before)
		}
		if l.bytes == before {
			return messages, true
		}
		messages += (before - l.bytes) / mean
	}
}
