package cells

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const echo = `export default { async task(event) { return {got: await event.text(), owner: "x"} } }`

// An event of an owner with a class runs in a process of its own, and one of another owner in this process.
func TestEventsRunInCells(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.classes["bob"] = ""
	h.install("alice", "w", echo)
	h.install("bob", "w", echo)
	for _, owner := range []string{"alice", "bob", "alice"} {
		reply, s := h.run(owner, "w", "hello "+owner)
		require.Equal(t, lifecycle.Ack, s.Outcome.Verdict, reply)
		require.Contains(t, reply, "hello "+owner)
	}
}
