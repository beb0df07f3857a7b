//go:build unguarded

package hostileowners

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Without its guard, each attack does the harm that TestAttacks would detect.
func TestControls(t *testing.T) {
	t.Parallel()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			f := openFleet(t, append(a.env, guard.Variable+"="+string(a.guard)+","+string(a.also))...)
			f.unguarded = true
			harm := a.run(t, f)
			require.NotEmpty(t, harm, "harm without its guard")
			t.Log(harm)
		})
	}
}
