package isolates

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// codeCache keeps the code that V8 compiled from workers' modules, by version, for all threads. The second context of a
// version, on any thread, starts from bytecode instead of text. The cache lives and ends with the process: bytecode is
// never read from outside the process (docs/development/adr/0007).
type codeCache struct {
	limit int // bytes; 0 = nothing is kept

	mu    sync.Mutex
	byKey map[release]*list.Element
	used  list.List // of *cachedCode, most recently used first
	bytes int

	hits, made, rejected atomic.Uint64
}

type cachedCode struct {
	key  release
	text string // the source text: V8 itself compares only its length
	data []byte
}

// size is what an entry is charged for. It includes the text, because the entry may be the only one that still holds
// it.
func (c *cachedCode) size() int { return len(c.text) + len(c.data) }

func newCodeCache(limit int) *codeCache {
	return &codeCache{limit: limit, byKey: map[release]*list.Element{}}
}

// CodeStats reports on the code cache.
type CodeStats struct {
	Versions int    `json:"versions"` // versions with code in the cache
	Bytes    int    `json:"bytes"`    // size of the cache
	Made     uint64 `json:"made"`     // entries made since the start
	Hits     uint64 `json:"hits"`     // contexts that started from it
	Rejected uint64 `json:"rejected"` // times that V8 did not accept it
}

func (c *codeCache) stats() CodeStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CodeStats{c.used.Len(), c.bytes, c.made.Load(), c.hits.Load(), c.rejected.Load()}
}

func (c *CodeStats) add(o CodeStats) {
	c.Versions += o.Versions
	c.Bytes += o.Bytes
	c.Made += o.Made
	c.Hits += o.Hits
	c.Rejected += o.Rejected
}

// get returns the code of w, or nil if there is none. The bytes never change.
func (c *codeCache) get(w *workers.Worker) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[releaseOf(w)]
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

// leastCode is the shortest module, in bytes, whose code is worth keeping. Compiling 1 KB takes no longer than reading
// compiled code, and V8's serializer of code leaves tables of 86 KB in the isolate.
const leastCode = 8 << 10

// wants reports whether code of w would be kept.
func (c *codeCache) wants(w *workers.Worker) bool {
	if len(w.Code) < leastCode {
		return false
	}
	// One worker must not evict all others. Bytecode is about as large as its text.
	if len(w.Code) > c.limit/8 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[releaseOf(w)] == nil
}

// put keeps data for w. It removes the least recently used entries when the cache exceeds its limit.
func (c *codeCache) put(w *workers.Worker, data []byte) {
	code := &cachedCode{key: releaseOf(w), text: w.Code, data: data}
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

// clear removes all entries.
func (c *codeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.used.Init()
	c.bytes = 0
}

// reject removes the code of w, which V8 did not accept.
func (c *codeCache) reject(w *workers.Worker) {
	c.rejected.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[releaseOf(w)]; e != nil {
		c.remove(e)
	}
}

// remove removes an entry. The caller holds the lock.
func (c *codeCache) remove(e *list.Element) {
	code := c.used.Remove(e).(*cachedCode)
	delete(c.byKey, code.key)
	c.bytes -= code.size()
}

// keepAfter is the number of events of a context after which its code is kept. V8 compiles functions when they first
// run. Before the first event only the functions exist that the module's own evaluation needs. After 5 or 20 events
// there are more, but reading them all costs as much as compiling the few saves (measured with 1, 50 and 500 KB of
// code).
const keepAfter = 1

// compile compiles and evaluates the module of a context.
func (c *codeCache) compile(jc *jsContext) (v8x.ModuleState, v8x.Result) {
	code := c.get(jc.worker)
	state, result := jc.v8.Module(v8x.Source{Name: jc.worker.File, Text: jc.worker.Code, Cache: code})
	if jc.v8.CacheRejected() {
		c.reject(jc.worker)
	}
	return state, result
}

// unkept are the contexts of a thread whose code is to be kept.
type unkept struct {
	cache *codeCache
	list  []*jsContext
}

// used records a context after a run that ended without failure.
func (u *unkept) used(jc *jsContext) {
	if jc.uses == keepAfter && u.cache.wants(jc.worker) {
		u.list = append(u.list, jc)
	}
}

// keep keeps the code of one context. That takes milliseconds for a large module, so it runs after reports were passed
// on.
func (u *unkept) keep(h *heaps) {
	for len(u.list) > 0 {
		jc := u.list[0]
		u.list = u.list[1:]
		if jc.isolate.away {
			u.list = append(u.list, jc)
			return
		}
		// The context may be gone, or another thread may have been faster.
		if jc.closed || !slices.Contains(h.isolates[jc.isolate.tenant], jc.isolate) || !u.cache.wants(jc.worker) {
			continue
		}
		u.cache.put(jc.worker, jc.v8.CodeCache())
		return
	}
}
