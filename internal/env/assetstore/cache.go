package assetstore

import (
	"container/heap"
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// cache keeps what was read, up to a number of bytes. When it is full, the owner that has most in it gives up what it
// has not used for longest. So owners that read all they can have equal shares, and an owner with little keeps it.
// Requests for the same thing read it once.
type cache struct {
	mu      sync.Mutex
	left    int64 // may be below 0 for a moment
	entries map[cacheKey]*list.Element
	owners  map[string]*share // those that have entries
	largest shares
	loads   map[cacheKey]*load
}

// share is what an owner has in the cache.
type share struct {
	owner string
	order list.List // of *cacheEntry, the last used first
	bytes int64
	at    int // in shares
}

// shares is a heap with the largest share first.
type shares []*share

func (s shares) Len() int           { return len(s) }
func (s shares) Less(i, j int) bool { return s[i].bytes > s[j].bytes }
func (s shares) Swap(i, j int)      { s[i], s[j] = s[j], s[i]; s[i].at, s[j].at = i, j }

// Push is of heap.Interface.
func (s *shares) Push(x any) {
	one := x.(*share) //nolint:errcheck,forcetypeassert // it has no others
	one.at = len(*s)
	*s = append(*s, one)
}

// Pop is of heap.Interface.
func (s *shares) Pop() any {
	last := (*s)[len(*s)-1]
	(*s)[len(*s)-1] = nil
	*s = (*s)[:len(*s)-1]
	return last
}

type cachedKind int

const (
	cachedList cachedKind = iota
	cachedFile
	cachedPart
)

type cacheKey struct {
	kind        cachedKind
	owner, hash string
	encoding    assets.Encoding
	part        int
}

type cacheEntry struct {
	key   cacheKey
	value any
	bytes int64
}

// load is a read that has not ended.
type load struct {
	done  chan struct{}
	value any
	err   error
}

func newCache(bytes int64) *cache {
	return &cache{left: bytes, entries: map[cacheKey]*list.Element{}, owners: map[string]*share{},
		loads: map[cacheKey]*load{}}
}

// cached returns a value from c, or reads it. The first request for a value reads it, for others too. It goes on when
// that request ends.
func cached[T any](ctx context.Context, c *cache, key cacheKey,
	read func(context.Context) (T, int64, error)) (value T, err error) {
	c.mu.Lock()
	if e := c.entries[key]; e != nil {
		c.owners[shareOf(key)].order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cacheEntry).value.(T), nil //nolint:errcheck,forcetypeassert // a key has values of one type
	}
	l := c.loads[key]
	if l != nil {
		c.mu.Unlock()
		select {
		case <-l.done:
		case <-ctx.Done():
			return value, ctx.Err()
		}
		if l.err != nil {
			return value, l.err
		}
		return l.value.(T), nil //nolint:errcheck,forcetypeassert // as above
	}
	l = &load{done: make(chan struct{}), err: fmt.Errorf("the read ended without a result")}
	c.loads[key] = l
	c.mu.Unlock()
	var bytes int64
	defer func() {
		c.mu.Lock()
		delete(c.loads, key)
		if l.err == nil {
			c.put(&cacheEntry{key, l.value, bytes})
		}
		c.mu.Unlock()
		close(l.done)
	}()
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	value, bytes, err = read(own)
	l.value, l.err = value, err
	return value, err
}

// shareOf is the owner whose share has a value.
func shareOf(key cacheKey) string {
	if guard.FileLists.Off() {
		return "" // one share for all
	}
	return key.owner
}

// put keeps a value. The caller holds the lock.
func (c *cache) put(e *cacheEntry) {
	s := c.owners[shareOf(e.key)]
	if s == nil {
		s = &share{owner: shareOf(e.key)}
		c.owners[s.owner] = s
		heap.Push(&c.largest, s)
	}
	c.entries[e.key] = s.order.PushFront(e)
	c.add(s, e.bytes)
	for c.left < 0 {
		largest := c.largest[0]
		old := largest.order.Remove(largest.order.Back()).(*cacheEntry) //nolint:errcheck,forcetypeassert // it has no others
		delete(c.entries, old.key)
		c.add(largest, -old.bytes)
	}
}

// add changes how much an owner has. The caller holds the lock.
func (c *cache) add(s *share, bytes int64) {
	c.left -= bytes
	s.bytes += bytes
	if s.order.Len() > 0 {
		heap.Fix(&c.largest, s.at)
		return
	}
	heap.Remove(&c.largest, s.at)
	delete(c.owners, s.owner)
}
