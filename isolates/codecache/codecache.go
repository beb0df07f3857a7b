// Package codecache keeps compiled code of workers within a process.
package codecache

import (
	"container/list"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Cache keeps the code that V8 compiled from workers' modules, by version, for all threads. The second context of a
// version, on any thread, starts from bytecode instead of text. The cache lives and ends with the process: bytecode is
// never read from outside the process (docs/development/adr/0007).
type Cache struct {
	limit int // bytes; 0 = nothing is kept

	mu    sync.Mutex
	byKey map[key]*list.Element
	used  list.List // of *cachedCode, most recently used first
	bytes int

	hits, made, rejected atomic.Uint64
}

// key identifies a version of a worker. Owners share nothing, not even identical code.
type key struct{ owner, worker, version, hash string }

func keyOf(w *workers.Worker) key { return key{w.Owner, w.Name, w.Version, w.Hash} }

type cachedCode struct {
	key  key
	text string // the source text: V8 itself compares only its length
	data []byte
}

// size is what an entry is charged for. It includes the text, because the entry may be the only one that still holds
// it.
func (c *cachedCode) size() int { return len(c.text) + len(c.data) }

// New makes a cache of at most that many bytes.
func New(limit int) *Cache {
	return &Cache{limit: limit, byKey: map[key]*list.Element{}}
}

// Stats reports on the code cache.
type Stats struct {
	Versions int    `json:"versions"` // versions with code in the cache
	Bytes    int    `json:"bytes"`    // size of the cache
	Made     uint64 `json:"made"`     // entries made since the start
	Hits     uint64 `json:"hits"`     // contexts that started from it
	Rejected uint64 `json:"rejected"` // times that V8 did not accept it
}

// Stats returns the figures of the cache.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{c.used.Len(), c.bytes, c.made.Load(), c.hits.Load(), c.rejected.Load()}
}

// Add adds the figures of another cache.
func (c *Stats) Add(o Stats) {
	c.Versions += o.Versions
	c.Bytes += o.Bytes
	c.Made += o.Made
	c.Hits += o.Hits
	c.Rejected += o.Rejected
}

// Get returns the code of w, or nil if there is none. The bytes never change.
func (c *Cache) Get(w *workers.Worker) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[keyOf(w)]
	if e == nil {
		return nil
	}
	code := e.Value.(*cachedCode)
	if code.text != w.Code {
		c.remove(e)
		return nil
	}
	c.used.MoveToFront(e)
	c.hits.Add(1)
	return code.data
}

// Least is the shortest module, in bytes, whose code is worth keeping. Compiling 1 KB takes no longer than reading
// compiled code, and V8's serializer of code leaves tables of 86 KB in the isolate.
const Least = 8 << 10

// Wants reports whether code of w would be kept.
func (c *Cache) Wants(w *workers.Worker) bool {
	if len(w.Code) < Least {
		return false
	}
	// One worker must not evict all others. Bytecode is about as large as its text.
	if len(w.Code) > c.limit/8 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[keyOf(w)] == nil
}

// Put keeps data for w. It removes the least recently used entries when the cache exceeds its limit.
func (c *Cache) Put(w *workers.Worker, data []byte) {
	code := &cachedCode{key: keyOf(w), text: w.Code, data: data}
	if data == nil || code.size() > c.limit/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[code.key]; e != nil {
		c.remove(e)
	}
	c.byKey[code.key] = c.used.PushFront(code)
	c.bytes += code.size()
	c.made.Add(1)
	for c.bytes > c.limit {
		c.remove(c.used.Back())
	}
}

// Clear removes all entries.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.used.Init()
	c.bytes = 0
}

// Reject removes the code of w, which V8 did not accept.
func (c *Cache) Reject(w *workers.Worker) {
	c.rejected.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[keyOf(w)]; e != nil {
		c.remove(e)
	}
}

// remove removes an entry. c.mu must be held.
func (c *Cache) remove(e *list.Element) {
	code := c.used.Remove(e).(*cachedCode)
	delete(c.byKey, code.key)
	c.bytes -= code.size()
}
