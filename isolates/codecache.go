package isolates

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// codeCache keeps what V8 compiled of workers' modules, with the version, for all threads: the second context of a
// version, on whatever thread, starts from bytecode instead of text. It lives and dies with the process: bytecode
// is never read from outside of it (docs/adr/0007).
type codeCache struct {
	limit int // bytes; 0 = nothing is kept

	mu    sync.Mutex
	byKey map[release]*list.Element
	used  list.List // of *cachedCode, the one used last first
	bytes int

	hits, made, rejected atomic.Uint64
}

type cachedCode struct {
	key  release
	text string // of which it was made: V8 itself compares nothing but the length
	data []byte
}

// size is what an entry is charged for. The text may be held by nothing else any more.
func (c *cachedCode) size() int { return len(c.text) + len(c.data) }

func newCodeCache(limit int) *codeCache {
	return &codeCache{limit: limit, byKey: map[release]*list.Element{}}
}

// CodeStats says what is kept of compiled workers.
type CodeStats struct {
	Versions int    `json:"versions"` // of which something is kept
	Bytes    int    `json:"bytes"`    // it takes
	Made     uint64 `json:"made"`     // since the start
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

// get returns the code of w, nil if there is none. The bytes never change.
func (c *codeCache) get(w *events.Worker) []byte {
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

// leastCode is how long a module is whose code is worth keeping, in bytes. Compiling 1 KB takes no longer than reading what
// was compiled, and V8's writer of code leaves tables of 86 KB behind in the isolate.
const leastCode = 8 << 10

// wants reports whether code of w would be kept.
func (c *codeCache) wants(w *events.Worker) bool {
	if len(w.Code) < leastCode {
		return false
	}
	// One worker must not drive out all others. Bytecode is about as large as its text.
	if len(w.Code) > c.limit/8 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[releaseOf(w)] == nil
}

// put keeps data for w. What was used the longest ago goes when there is too much.
func (c *codeCache) put(w *events.Worker, data []byte) {
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

// clear drops all of it.
func (c *codeCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.byKey)
	c.used.Init()
	c.bytes = 0
}

// reject drops the code of w, which V8 did not accept.
func (c *codeCache) reject(w *events.Worker) {
	c.rejected.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[releaseOf(w)]; e != nil {
		c.remove(e)
	}
}

// remove drops an entry. The lock is held.
func (c *codeCache) remove(e *list.Element) {
	code := c.used.Remove(e).(*cachedCode)
	delete(c.byKey, code.key)
	c.bytes -= code.size()
}

// keepAfter is after how many events of a context its code is kept. V8 compiles functions when they first run: before
// the first event there are only those that the module's own evaluation needs. After 5 or 20 events there are more
// of them, but reading them all costs what compiling the few saves (measured with 1, 50 and 500 KB of code).
const keepAfter = 1

// compile evaluates the module of a guest.
func (t *thread) compile(g *guest) (v8x.ModuleState, v8x.Result) {
	code := t.pool.code.get(g.worker)
	state, result := g.ctx.Module(v8x.Source{Name: g.worker.File, Text: g.worker.Code, Cache: code})
	if g.ctx.CacheRejected() {
		t.pool.code.reject(g.worker)
	}
	return state, result
}

// used notes a guest whose code is to be kept, when its run has ended well.
func (t *thread) used(g *guest) {
	if g.uses == keepAfter && t.pool.code.wants(g.worker) {
		t.unkept = append(t.unkept, g)
	}
}

// keepCode keeps the code of one guest. It takes milliseconds with a large module: nothing that was to be reported waits
// for it.
func (t *thread) keepCode() {
	for len(t.unkept) > 0 {
		g := t.unkept[0]
		t.unkept = t.unkept[1:]
		if g.isolate.away {
			t.unkept = append(t.unkept, g)
			return
		}
		// It may be gone by now, or another thread may have been faster.
		if g.closed || !slices.Contains(t.isolates[g.isolate.owner], g.isolate) || !t.pool.code.wants(g.worker) {
			continue
		}
		t.pool.code.put(g.worker, g.ctx.CodeCache())
		return
	}
}
