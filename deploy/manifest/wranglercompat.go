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

	// nodeSince is the date from which workers have Node's modules at Cloudflare. Before it they have them by a flag.
	// Two flags take them away, because there are two that give them.
	nodeSince = "2026-08-04"
	nodeFlag  = "nodejs_compat"
	nodeFlag2 = "nodejs_compat_v2"
	noNode    = "no_nodejs_compat"
	noNode2   = "no_nodejs_compat_v2"
)

// wranglerCompatibility reads which binaryType WebSockets have, and whether there are Node's modules.
func (m *Manifest) wranglerCompatibility(root *node) error {
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
	m.compatible = map[string]bool{}
	says := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(flags, name) })
	}
	switch {
	case says(blobsFlag):
	case says(noBlobs), n != nil && n.scalar < blobsSince:
		m.BinaryType, m.compatible[compatibilityDate] = workers.BinaryBuffer, true
	}
	switch {
	case says(noNode, noNode2):
	case says(nodeFlag, nodeFlag2):
		m.Node, m.compatible[compatibilityFlags] = true, true
	case n != nil && n.scalar >= nodeSince:
		m.Node, m.compatible[compatibilityDate] = true, true
	}
	return nil
}
