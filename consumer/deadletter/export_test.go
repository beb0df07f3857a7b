package deadletter

import (
	"context"
	"iter"
)

// NewestBy is Newest with windows of another size.
func (d *Store) NewestBy(ctx context.Context, f Filter, before, window, scan uint64, letters,
	bytes int) iter.Seq2[Window, error] {
	return d.newest(ctx, f, before, pace{window, letters, bytes, scan})
}

// Finder returns a function that reports whether s contains text, with a to z in either case.
func Finder(text string) func(s string) bool {
	f := newFinder(text)
	return func(s string) bool { return within(f, s) }
}

// Tally adds up subjects within bounds.
func Tally(all string, most, owners int, subjects ...string) []Count {
	t := newTally(all, most, owners)
	for _, s := range subjects {
		t.add(s, 1)
	}
	return t.counts()
}
