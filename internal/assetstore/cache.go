package assetstore

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
)

// cache keeps what was read, up to a number of bytes. What was used last stays. Requests for the same thing read it
// once.
type cache struct {
	mu      sync.Mutex
	left    int64 // may be below 0 for a moment
	entries map[cacheKey]*list.Element
	order   list.List // of *cacheEntry, the last used first
	loads   map[cacheKey]*load
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
	return &cache{left: bytes, entries: map[cacheKey]*list.Element{}, loads: map[cacheKey]*load{}}
}

// cached returns a value from c, or reads it. The first request for a value reads it, for others too. It goes on when
// that request ends.
func cached[T any](ctx context.Context, c *cache, key cacheKey, read func(context.Context) (T, int64, error)) (value T, err error) {
	c.mu.Lock()
	if e := c.entries[key]; e != nil {
		c.order.MoveToFront(e)
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

// put keeps a value, in place of those that were not used for longest. The caller holds the lock.
func (c *cache) put(e *cacheEntry) {
	c.entries[e.key] = c.order.PushFront(e)
	for c.left -= e.bytes; c.left < 0; {
		last := c.order.Back()
		old := c.order.Remove(last).(*cacheEntry) //nolint:errcheck,forcetypeassert // it has no others
		delete(c.entries, old.key)
		c.left += old.bytes
	}
}
