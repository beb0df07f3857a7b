package assetstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An owner that reads any amount takes nothing from owners that have less in the cache.
func TestOwnersShareTheCache(t *testing.T) {
	t.Parallel()
	c := newCache(1000)
	reads := 0
	get := func(owner, hash string, bytes int64) {
		_, err := cached(t.Context(), c, cacheKey{owner: owner, hash: hash}, func(context.Context) (string, int64, error) {
			reads++
			return hash, bytes, nil
		})
		require.NoError(t, err)
	}
	for i := range 10 {
		get(fmt.Sprint("small", i), "page", 40)
	}
	for range 5 {
		for i := range 6 {
			get("acme", fmt.Sprint("list", i), 300)
		}
	}
	reads = 0
	for i := range 10 {
		get(fmt.Sprint("small", i), "page", 40)
	}
	require.Zero(t, reads, "what others have stays")
	get("acme", "list5", 300)
	get("acme", "list4", 300)
	require.Zero(t, reads, "the two lists that it used last fit")
	get("acme", "list3", 300)
	get("acme", "list5", 300)
	require.Equal(t, 2, reads, "and the one that it has not used for longest goes")
	get("beta", "more than all", 5000)
	require.Equal(t, int64(0), c.owned("beta"), "what does not fit is not kept")
	for i := range 20 {
		get("beta", fmt.Sprint(i), 100)
		get("acme", fmt.Sprint(i), 100)
	}
	require.InDelta(t, c.owned("acme"), c.owned("beta"), 100, "both take what they get, and have equal shares")
	for i := range 10 {
		require.Equal(t, int64(40), c.owned(fmt.Sprint("small", i)))
	}
}

// owned is how many bytes of an owner are in the cache.
func (c *cache) owned(owner string) int64 {
	if s := c.owners[owner]; s != nil {
		return s.bytes
	}
	return 0
}

// Whatever is read, the numbers are those of the entries.
func TestCacheCounts(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	c := newCache(500)
	for range 5000 {
		key := cacheKey{owner: fmt.Sprint(rnd.IntN(5)), hash: fmt.Sprint(rnd.IntN(9))}
		_, err := cached(t.Context(), c, key, func(context.Context) (int, int64, error) { return 0, rnd.Int64N(300), nil })
		require.NoError(t, err)
		var all int64
		entries := 0
		for owner, s := range c.owners {
			require.Equal(t, s, c.largest[s.at])
			require.Equal(t, owner, s.owner)
			require.Positive(t, s.order.Len())
			require.GreaterOrEqual(t, c.largest[0].bytes, s.bytes)
			var sum int64
			for e := s.order.Front(); e != nil; e = e.Next() {
				sum += e.Value.(*cacheEntry).bytes //nolint:errcheck,forcetypeassert // it has no others
			}
			require.Equal(t, sum, s.bytes)
			all += sum
			entries += s.order.Len()
		}
		require.Equal(t, int64(500)-all, c.left)
		require.GreaterOrEqual(t, c.left, int64(0))
		require.Len(t, c.entries, entries)
	}
}
