package events

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllocationsOfDecode fails when decoding a stored event allocates more often than agreed: the event itself, and
// what its headers need.
func TestAllocationsOfDecode(t *testing.T) {
	body := make([]byte, 1024)
	for name, c := range map[string]struct {
		origin Origin
		header Header
		agreed float64
	}{
		"task": {stored("task", "acme", "hello"), Header{"Reply-To": {"_INBOX.abc.1"}, "Nats-Msg-Id": {"acme:1"}}, 1},
		"fetch": {stored("fetch", "acme", "hello"), Header{
			"Reply-To": {"_INBOX.abc.1"}, "Event-Id": {"e"}, "Http-Url": {"/a?b=c"}, "Http-Method": {"POST"},
			"Http-Header-Content-Type": {"application/json"},
		}, 4},
	} {
		per := testing.AllocsPerRun(200, func() {
			if _, f := testDecoder.Decode(c.origin, c.header, body, storedAt); f != nil {
				t.Error(f)
			}
		})
		t.Logf("%s: %.0f allocations", name, per)
		require.LessOrEqual(t, per, c.agreed, name)
	}
}
