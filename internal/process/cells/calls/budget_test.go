package calls

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nobody gets more of a budget than there is, or waits while it has some.
func TestBudgetsAreKept(t *testing.T) {
	t.Parallel()
	b := newBudget(10)
	some, other := held{of: &b}, held{of: &b}
	require.Error(t, some.try(-1))
	require.Error(t, some.try(11))
	require.Error(t, some.take(t.Context(), -1))
	require.Error(t, some.take(t.Context(), 11))
	require.NoError(t, some.take(t.Context(), 6))
	require.Error(t, some.take(t.Context(), 5), "more than the budget has")
	require.NoError(t, other.try(3))
	require.Error(t, some.take(t.Context(), 2), "it has bytes, and does not wait")
	other.free()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, other.take(ctx, 5), context.Canceled)
	require.Zero(t, other.n)
	some.free()
	require.NoError(t, other.try(10))
}
