package storage

import (
	"cmp"
	"maps"
	"slices"
)

// ledger is how many bytes each owner has in a stream. It is built by reading the stream from the oldest message to the
// newest. Messages that other processes removed since are still in it, until the stream is read again.
type ledger struct {
	through uint64 // the sequence up to which the stream was read
	bytes   uint64
	owners  map[string]*holding
}

// holding is what one owner has.
type holding struct {
	bytes uint64
	parts []part // the oldest first
}

// part is a run of consecutive messages of an owner.
type part struct {
	last  uint64 // sequence
	bytes uint64
}

// add notes a message. Messages are added to the same part until it has grain bytes.
func (l *ledger) add(owner string, seq, size, grain uint64) {
	if l.owners == nil {
		l.owners = make(map[string]*holding)
	}
	s := l.owners[owner]
	if s == nil {
		s = &holding{}
		l.owners[owner] = s
	}
	if n := len(s.parts); n > 0 && s.parts[n-1].bytes < grain {
		s.parts[n-1].last, s.parts[n-1].bytes = seq, s.parts[n-1].bytes+size
	} else {
		s.parts = append(s.parts, part{seq, size})
	}
	s.bytes, l.bytes, l.through = s.bytes+size, l.bytes+size, max(l.through, seq)
}

// cut forgets an owner's parts that end before a sequence.
func (l *ledger) cut(owner string, before uint64) {
	s := l.owners[owner]
	for len(s.parts) > 0 && s.parts[0].last < before {
		s.bytes, l.bytes = s.bytes-s.parts[0].bytes, l.bytes-s.parts[0].bytes
		s.parts = s.parts[1:]
	}
	if len(s.parts) == 0 {
		delete(l.owners, owner)
	}
}

// begin forgets the messages before the first message of the stream.
func (l *ledger) begin(first uint64) {
	for owner := range l.owners {
		l.cut(owner, first)
	}
}

// overdraft is what an owner has to give up: all of its messages before a sequence.
type overdraft struct {
	owner     string
	before    uint64
	had, free uint64 // bytes
	gives     uint64 // bytes
}

// overdrafts returns the owners that have more stored than is free, the largest first, and what each has to give up so
// that it then has clearly less than is free.
func (l *ledger) overdrafts(total, limit uint64) []overdraft {
	owners := slices.SortedFunc(maps.Keys(l.owners), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.owners[b].bytes, l.owners[a].bytes), cmp.Compare(a, b))
	})
	free := limit - min(limit, total)
	var list []overdraft
	for _, owner := range owners {
		s := l.owners[owner]
		if s.bytes <= free {
			break
		}
		o := overdraft{owner: owner, had: s.bytes, free: free}
		keep := (s.bytes + free) / 16 * 7 // the owner may have half; keep a little less, for a margin
		for _, p := range s.parts {
			if s.bytes-o.gives <= keep {
				break
			}
			o.before, o.gives = p.last+1, o.gives+p.bytes
		}
		free += o.gives
		list = append(list, o)
	}
	return list
}
