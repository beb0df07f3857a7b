package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	var names []string
	for v := None; v <= Park; v++ {
		names = append(names, v.String())
	}
	require.Equal(t, []string{"none", "ack", "dead", "retry", "return", "park"}, names)
}
