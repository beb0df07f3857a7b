package certificates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func all(string) bool { return true }

// An order that fails is repeated after 5 minutes, and then after twice as long each time, up to 4 hours. An owner
// causes no more than three orders a week for each host that it may have.
func TestOrdersOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	c := Config{OwnerHosts: 4}
	l, now, orders := ledger{Hosts: map[string]*hostOrders{}}, time.UnixMilli(1_800_000_000_000), 0
	var waits []time.Duration
	for begin := now; now.Before(begin.Add(week)); {
		_, err := l.reserve(shop, false, c, defaultTimes, all, now)
		var wait *later
		if err == nil {
			orders++
			l.Hosts[shop].failed(defaultTimes, 0)
			continue
		}
		require.ErrorAs(t, err, &wait)
		require.False(t, wait.other)
		require.True(t, wait.at.After(now))
		waits = append(waits, wait.at.Sub(now))
		now = wait.at
	}
	require.Equal(t, 12, orders)
	minutes := []time.Duration{}
	for _, w := range waits[:8] {
		minutes = append(minutes, w/time.Minute)
	}
	require.Equal(t, []time.Duration{5, 10, 20, 40, 80, 160, 240, 240}, minutes)
	_, err := l.reserve(shop, false, c, defaultTimes, all, now)
	require.NoError(t, err, "a week later")

	l = ledger{Hosts: map[string]*hostOrders{shop: {}}, Orders: slicesOf(now.Unix(), 12)}
	_, err = l.reserve(shop, false, c, defaultTimes, all, now)
	require.ErrorContains(t, err, "the owner has caused 12 orders of certificates in a week")
	_, err = l.reserve(shop, true, c, defaultTimes, all, now)
	require.NoError(t, err, "a renewal")
}

func slicesOf(v int64, n int) (list []int64) {
	for range n {
		list = append(list, v)
	}
	return list
}

// One owner does not use up what a CA issues in a week for the domain that all owners' hosts are below.
func TestOrdersForADomainAreShared(t *testing.T) {
	t.Parallel()
	begin := time.UnixMilli(1_800_000_000_000)
	l, now, orders := domainLedger{}, begin, map[string]int{}
	for _, owner := range []string{"acme", "beta", "gamma"} {
		for {
			err := l.reserve("fleet.example", owner, 50, now)
			if err != nil {
				var wait *later
				require.ErrorAs(t, err, &wait)
				require.Equal(t, begin.Add(week), wait.at)
				require.ErrorContains(t, err, "for hosts of fleet.example")
				break
			}
			orders[owner]++
			now = now.Add(time.Second)
		}
	}
	require.Equal(t, map[string]int{"acme": 25, "beta": 13, "gamma": 6}, orders)
	require.NoError(t, l.reserve("fleet.example", "acme", 50, now.Add(week+time.Minute)), "a week later")
	for host, want := range map[string]string{
		"shop--acme.w.fleet.example": "fleet.example", "a.b.co.uk": "b.co.uk", "co.uk": "co.uk", "x.github.io": "x.github.io",
		"localhost": "localhost",
	} {
		require.Equal(t, want, registered(host))
	}
}

// Only one process orders, unless it has died.
func TestAnOrderThatWasLost(t *testing.T) {
	t.Parallel()
	l, now := ledger{Hosts: map[string]*hostOrders{}}, time.UnixMilli(1_800_000_000_000)
	try := func(after time.Duration) error {
		_, err := l.reserve(shop, false, Config{OwnerHosts: 1}, defaultTimes, all, now.Add(after))
		return err
	}
	require.NoError(t, try(0))
	require.ErrorIs(t, try(time.Minute), errElsewhere)
	require.ErrorIs(t, try(defaultTimes.lost), errFailed, "it counts as one that failed")
	require.NoError(t, try(defaultTimes.backoff))
	*l.Hosts[shop] = hostOrders{Issued: now.UnixMilli()}
	require.ErrorIs(t, try(time.Second), errElsewhere, "its certificate is on the way")
	require.NoError(t, try(defaultTimes.recent))
}

// The ledger of an owner that has and does all it may fits the bucket.
func TestALedgerFits(t *testing.T) {
	t.Parallel()
	l := ledger{Hosts: map[string]*hostOrders{}, Orders: slicesOf(1<<33, ordersPerHost*MaxOwnerHosts)}
	for i := range MaxOwnerHosts {
		l.Hosts[fmt.Sprintf("%03d.%s", i, strings.Repeat("a", maxHost-4))] = &hostOrders{1 << 42, 1 << 42, 1 << 30, 1 << 42}
	}
	text, err := json.Marshal(l)
	require.NoError(t, err)
	require.Less(t, len(text), maxValue)
}
