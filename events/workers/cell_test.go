package workers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A policy says in which cell its owner is, and the fleet where it says nothing. A cell for one owner is never one that
// has a name, nor that of a group.
func TestCellOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy Policy
		fleet  Cell
		want   string
	}{
		{Policy{}, "", ""},
		{Policy{}, CellShared, ""},
		{Policy{}, CellOwn, "own:acme"},
		{Policy{}, "guests", "guests"},
		{Policy{Cell: CellShared}, CellOwn, ""},
		{Policy{Cell: CellOwn}, "", "own:acme"},
		{Policy{Cell: "acme"}, CellOwn, "acme"},
		{Policy{Cell: CellOwn, Group: "acme"}, "", "own:@acme"},
		{Policy{Group: "acme"}, CellOwn, "own:@acme"},
		{Policy{Cell: "guests", Group: "acme"}, CellOwn, "guests"},
		{Policy{Group: "acme"}, "", ""},
	} {
		require.Equal(t, c.want, CellOf("acme", c.policy, c.fleet), "%+v", c)
	}
}

func TestCellsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []Cell{"", CellShared, CellOwn, "guests"} {
		require.NoError(t, c.Check())
		require.NoError(t, Policy{Cell: c}.Validate())
	}
	for _, c := range []Cell{"own:acme", "@acme", "two words", "a/b"} {
		require.ErrorContains(t, Policy{Cell: c}.Validate(), `cell "`+string(c)+`": a name is 1 to 64 of`)
		require.ErrorContains(t, c.Check(), "shared is with all others, and own apart")
	}
	text, err := json.Marshal(Policy{Cell: CellOwn})
	require.NoError(t, err)
	require.Equal(t, `{"cell":"own"}`, string(text))
}
