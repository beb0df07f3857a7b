package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
)

// SplitPoints is how many parts all keys of a worker are divided into.
const SplitPoints = 10_000

// SplitPoint is the place of a key among those of a worker, 0 to 9999: the first eight bytes of the SHA-256 of
// "owner/worker", a zero byte and the key, as a big-endian number, modulo 10000. The new version of a split has the
// keys whose place is below its percentage times 100. So each attempt and each process chooses alike, and a higher
// percentage takes no key away from it.
func SplitPoint(owner, worker, key string) int {
	var room [256]byte
	text := append(room[:0], owner...)
	text = append(text, '/')
	text = append(text, worker...)
	text = append(text, 0)
	text = append(text, key...)
	sum := sha256.Sum256(text)
	return int(binary.BigEndian.Uint64(sum[:8]) % SplitPoints)
}

// SplitPoint is the place of the event among the keys of its worker.
func (e *Event) SplitPoint() int { return SplitPoint(e.Owner, e.Worker, cmp.Or(e.VersionKey, e.ID)) }
