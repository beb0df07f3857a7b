package bindings

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Pages of keys and objects end where their reader says, and go on there.
func TestPagesThatAreCut(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.catalog.SetPolicy("acme", workers.Policy{BindingCalls: 1_000_000}) // the pages cost more than a second's calls
	free := func(int) error { return nil }
	keys, objects := p.Data("acme", free), p.Objects("acme", free)
	_, err := keys.KeyPage(t.Context(), "space", "", "", 10, nil)
	require.ErrorIs(t, err, ErrNoData)
	_, err = objects.ObjectPage(t.Context(), "space", "", "", 10, nil)
	require.ErrorIs(t, err, ErrNoObjects)
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("k%02d", i)
		want = append(want, key)
		require.NoError(t, keys.Put(t.Context(), "space", key, Value{Data: []byte("v")}, 0))
		require.NoError(t, objects.Put(t.Context(), "space", &Object{Key: key}, nil))
	}
	for limit := 1; limit < 30; limit += 4 {
		for most := 1; most < 30; most += 5 {
			var names, named []string
			for cursor, page := "", 0; ; {
				next, err := keys.KeyPage(t.Context(), "space", "k", cursor, limit, func(k Key) bool {
					if page == most {
						return false
					}
					names = append(names, k.Name)
					page++
					return true
				})
				require.NoError(t, err)
				if page, cursor = 0, next; next == "" {
					break
				}
			}
			for cursor, page := "", 0; ; {
				next, err := objects.ObjectPage(t.Context(), "space", "k", cursor, limit, func(o *Object) bool {
					if page == most {
						return false
					}
					named = append(named, o.Key)
					page++
					return true
				})
				require.NoError(t, err)
				if page, cursor = 0, next; next == "" {
					break
				}
			}
			require.Equal(t, want, names, "pages of %d, cut to %d", limit, most)
			require.Equal(t, want, named, "pages of %d, cut to %d", limit, most)
		}
	}
	next, err := keys.KeyPage(t.Context(), "space", "k", "", 10, func(Key) bool { return false })
	require.NoError(t, err)
	require.Empty(t, next, "before the first key")
	_, err = p.Data("beta", free).KeyPage(t.Context(), "space", "", "", 10, nil)
	require.ErrorIs(t, err, ErrNoData)
}

// What a list takes is told, and may be refused.
func TestListsAreCharged(t *testing.T) {
	t.Parallel()
	p := start(t)
	took := 0
	hold := func(n int) error {
		if took += n; took > 500 {
			return errors.New("too much")
		}
		return nil
	}
	keys, objects := p.Data("acme", hold), p.Objects("acme", hold)
	for i := range 10 {
		require.NoError(t, keys.Put(t.Context(), "space", fmt.Sprint(i), Value{}, 0))
		require.NoError(t, objects.Put(t.Context(), "space", &Object{Key: fmt.Sprint(i)}, nil))
	}
	_, err := keys.KeyPage(t.Context(), "space", "", "", 1, func(Key) bool { return true })
	require.EqualError(t, err, "429 too much")
	took = 0
	_, err = objects.ObjectPage(t.Context(), "space", "", "", 1, func(*Object) bool { return true })
	require.ErrorContains(t, err, "too much")
	took = 0
	_, err = keys.KeyPage(t.Context(), "space", "1", "", 1, func(Key) bool { return true })
	require.NoError(t, err, "a longer prefix takes less")
}
