package owners

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetsRefill(t *testing.T) {
	t.Parallel()
	s := Budgets{Share: BetweenShare}
	now := time.Now()
	require.True(t, s.Take("a", BetweenAtOnce, now, 2))
	require.False(t, s.Take("a", time.Millisecond, now, 2))
	require.True(t, s.Take("b", time.Millisecond, now, 2))
	require.False(t, s.Take("a", time.Second, now.Add(time.Second), 2))
	require.True(t, s.Take("a", 100*time.Millisecond, now.Add(6*time.Second), 2))
	for i := range 100 {
		s.Take(fmt.Sprint(i), 0, now.Add(time.Minute), 2)
	}
	require.Less(t, len(s.of), 10, "full ones are forgotten")
}
