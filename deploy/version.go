package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pinwheel-run/pinwheel/events"
)

// hashDigits is how much of the hash a version shows.
const hashDigits = 12

// version is "<number>-<first 12 hex digits of the hash>".
func version(number int, hash string) string { return fmt.Sprintf("%d-%s", number, hash[:hashDigits]) }

// Hash is the SHA-256, in hex, over bundle and manifest: two workers with the same hash behave the same. It covers
// the source map, because after an edit of nothing but comments stacks must still name the right lines.
func (b *Bundle) Hash() (string, error) {
	manifest, err := b.Manifest.canonical()
	if err != nil {
		return "", fmt.Errorf("hash bundle: %w", err)
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(b.File), []byte(b.Code), b.SourceMap, manifest} {
		// The length keeps the parts apart.
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part) // a hash.Hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// canonical is the manifest as bytes that are the same whenever it says the same.
func (m Manifest) canonical() ([]byte, error) {
	var lifetime *events.Lifetime // left out when there is none: hashes of before there was one stand
	if m.Lifetime != (events.Lifetime{}) {
		lifetime = &m.Lifetime
	}
	// encoding/json sorts the keys of maps and keeps the order of fields.
	return json.Marshal(struct {
		Mode     events.Mode
		Vars     map[string]string `json:",omitempty"`
		Queues   map[string]string `json:",omitempty"`
		Limits   events.Limits
		Retries  events.Retries
		Lifetime *events.Lifetime `json:",omitempty"`
		OnDead   *events.DeadHook `json:",omitempty"`

		Idempotent bool `json:",omitempty"`

		Schedules []events.Schedule `json:",omitempty"`
	}{m.Mode.OrDefault(), m.Vars, m.Queues, m.Limits, m.Retries, lifetime, m.OnDead, m.Idempotent, m.Schedules})
}
