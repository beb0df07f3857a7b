package consumer

import (
	"cmp"
	"slices"
)

// ledger is how many bytes a stream has of each owner, as it was read from the oldest message to the newest. What was removed since by others than
// whoever keeps the ledger is in it still, until it is made anew.
type ledger struct {
	through uint64 // the sequence up to which the stream was read
	bytes   uint64
	owners  map[string]*shelf
}

// shelf is what there is of one owner.
type shelf struct {
	bytes uint64
	parts []part // the oldest first
}

// part is messages of an owner that follow each other.
type part struct {
	last  uint64 // sequence
	bytes uint64
}

// add notes a message. Messages become one part until that has grain bytes.
func (l *ledger) add(owner string, seq, size, grain uint64) {
	if l.owners == nil {
		l.owners = make(map[string]*shelf)
	}
	s := l.owners[owner]
	if s == nil {
		s = &shelf{}
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

// begin forgets what lies before the first message of the stream.
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

// overdrafts are the owners that have more stored than there is free, the one with the most first, and what each gives up so that it has clearly less than
// is free then.
func (l *ledger) overdrafts(total, limit uint64) []overdraft {
	owners := make([]string, 0, len(l.owners))
	for owner := range l.owners {
		owners = append(owners, owner)
	}
	slices.SortFunc(owners, func(a, b string) int {
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
		keep := (s.bytes + free) / 16 * 7 // half of it is what it may have; a little less, so that it is not over again at once
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
