// Package eventid makes the ids of events that the fleet makes itself.
//
// Whoever may publish events chooses message ids, and JetStream compares them for the whole stream. An owner that could
// tell the next id of another owner's events would store an event under it first, and JetStream would drop the other
// owner's as a duplicate. So an id says nothing about the next one.
package eventid

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// idBytes is the number of random bytes of an id: nobody guesses one, and no two are the same.
const idBytes = 16

// Maker makes ids of 128 random bits. Any goroutine may use it.
type Maker struct {
	prefix string

	counted atomic.Uint64 // without guard.EventIDs

	mu   sync.Mutex
	left []byte // random bytes that are not used, the rest of pool
	pool [256 * idBytes]byte
}

// New returns a Maker whose ids begin with kind and "-".
func New(kind string) *Maker { return &Maker{prefix: kind + "-"} }

// Next returns a new id. The system is asked for random bytes once for many ids.
func (m *Maker) Next() string {
	if guard.EventIDs.Off() {
		return m.prefix + strconv.FormatUint(m.counted.Add(1), 10)
	}
	var random [idBytes]byte
	m.mu.Lock()
	if len(m.left) == 0 {
		_, _ = rand.Read(m.pool[:]) // it never fails
		m.left = m.pool[:]
	}
	copy(random[:], m.left)
	clear(m.left[:idBytes])
	m.left = m.left[idBytes:]
	m.mu.Unlock()
	var digits [2 * idBytes]byte
	hex.Encode(digits[:], random[:])
	return m.prefix + string(digits[:])
}
