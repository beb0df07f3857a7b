package secrets

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Derive makes a key for a purpose from each identity, in the order of the file. All processes with the same identities
// derive the same keys, 32 bytes each, and from a key nobody finds an identity or the key of another purpose. Use the
// first to sign, and all to check. It returns none when ids is nil.
func (ids *Identities) Derive(purpose string) (keys [][]byte) {
	if ids == nil {
		return nil
	}
	for _, id := range ids.all {
		m := hmac.New(sha256.New, fmt.Append(nil, id))
		m.Write([]byte("pinwheel " + purpose))
		keys = append(keys, m.Sum(nil))
	}
	return keys
}
