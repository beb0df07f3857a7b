// Package eventid makes the ids of direct events.
package eventid

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"
)

// Maker makes ids. No other Maker, of whatever process, makes the same. Any goroutine may use it.
type Maker struct {
	prefix string
	n      atomic.Uint64
}

// New returns a Maker whose ids begin with kind and "-".
func New(kind string) *Maker {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &Maker{prefix: kind + "-" + hex.EncodeToString(b[:]) + "-"}
}

// Next returns a new id.
func (m *Maker) Next() string { return m.prefix + strconv.FormatUint(m.n.Add(1), 10) }
