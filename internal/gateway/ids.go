package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"
)

// ids makes the ids of events. No other process makes the same.
type ids struct {
	prefix string
	n      atomic.Uint64
}

func newIDs() *ids {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &ids{prefix: "http-" + hex.EncodeToString(b[:]) + "-"}
}

func (i *ids) next() string { return i.prefix + strconv.FormatUint(i.n.Add(1), 10) }
