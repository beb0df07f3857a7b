package offload

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPoolTakesOwnersInTurn(t *testing.T) {
	o := NewPool(1)
	var order []string
	gate := make(chan struct{})
	o.Submit("a", func() { <-gate })
	for i := range 3 {
		o.Submit("a", func() { order = append(order, fmt.Sprint("a", i)) })
	}
	for i := range 2 {
		o.Submit("b", func() { order = append(order, fmt.Sprint("b", i)) })
	}
	o.Submit("c", func() { order = append(order, "c0") })
	close(gate)
	o.Wait()
	require.Equal(t, []string{"a0", "b0", "c0", "a1", "b1", "a2"}, order)
	require.Equal(t, 1, o.free)
	require.Empty(t, o.jobs)
	require.Empty(t, o.turns)
	ran := false
	o.Submit("d", func() { ran = true })
	o.Wait()
	require.True(t, ran)
}
