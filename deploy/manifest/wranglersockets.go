package manifest

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// What of Cloudflare's compatibility makes a difference here.
const (
	compatibilityDate  = "compatibility_date"
	compatibilityFlags = "compatibility_flags"

	// blobsSince is the date from which binary messages of WebSockets are Blobs at Cloudflare. Before it they are
	// ArrayBuffers. The flags say so whatever the date is.
	blobsSince = "2026-03-17"
	blobsFlag  = "websocket_standard_binary_type"
	noBlobs    = "no_websocket_standard_binary_type"
)

// wranglerSockets reads which binaryType WebSockets have.
func (m *Manifest) wranglerSockets(root *node) error {
	var flags []string
	if n := root.member(compatibilityFlags); n != nil {
		for _, item := range n.items {
			flags = append(flags, item.scalar)
		}
	}
	n := root.member(compatibilityDate)
	if n != nil {
		if _, err := time.Parse(time.DateOnly, n.scalar); err != nil {
			return m.d.fail(n.at, "%s is %s: it is a date like %q", compatibilityDate, n, blobsSince)
		}
	}
	switch {
	case slices.Contains(flags, blobsFlag):
	case slices.Contains(flags, noBlobs), n != nil && n.scalar < blobsSince:
		m.BinaryType = workers.BinaryBuffer
	}
	return nil
}
