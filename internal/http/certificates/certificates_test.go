package certificates

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/acmetest"
)

const (
	shop = "shop.acme.example"
	blog = "blog.acme.example"
)

// The process that has the first connection orders the certificate, the CA asks another process, and all serve it. One
// that starts later does too.
func TestProcessesShareACertificate(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	a, b := f.start(0), f.start(f.port)
	serial := a.serial(shop)
	require.Equal(t, serial, b.serial("SHOP.acme.example"))
	a.stop()
	require.Equal(t, serial, f.start(0).serial(shop), "after a restart")
	require.Equal(t, []string{shop}, f.ca.Orders())

	kv := f.bucket()
	keys, err := kv.Keys(t.Context())
	require.NoError(t, err)
	dir := prefix(f.ca.Directory)
	require.ElementsMatch(t, []string{dir + "account", dir + "cert." + shop, dir + "owner.acme"}, keys,
		"the answer to the challenge was removed")
	for _, key := range keys {
		e, err := kv.Get(t.Context(), key)
		require.NoError(t, err)
		require.NotContains(t, string(e.Value()), "PRIVATE")
		require.Equal(t, !strings.Contains(key, ".owner."), strings.HasPrefix(string(e.Value()), "age-encryption.org"), key)
	}
}

// However many connections come to however many processes, there is one order.
func TestOneProcessOrders(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	all := []*process{f.start(0), f.start(f.port), f.start(0)}
	var running sync.WaitGroup
	for i := range 24 {
		running.Go(func() {
			if _, err := all[i%3].connect(shop); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	require.Equal(t, []string{shop}, f.ca.Orders())
}

// What a stranger writes as host causes no order, and stays nowhere.
func TestStrangersCauseNoOrder(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, "under_score.acme.example", "127.0.0.1", "acme")
	p := f.start(f.port)
	for _, host := range []string{
		"other.acme.example", "deep.shop.acme.example", "*.acme.example", "acme", "under_score.acme.example", "a..b",
		strings.Repeat("a.", 126) + "aa.example", strings.Repeat("a", 64) + ".example", "", "1.2.3.4",
	} {
		p.refuses(host)
	}
	require.Empty(t, f.ca.Orders())
	require.Empty(t, p.known)
	require.NotContains(t, p.log.String(), "other.acme.example")
	p.serial(shop)
}

// An owner has certificates for a number of hosts, and gets another one when it gives one up. Other owners have their
// own.
func TestHostsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog, "third.acme.example")
	f.hosts.set("www.beta.example", "beta")
	p := f.start(f.port, func(c *Config, tm *times) { c.OwnerHosts, tm.backoff = 2, time.Millisecond })
	p.serial(shop)
	p.serial(blog)
	p.refuses("third.acme.example")
	p.serial("www.beta.example")
	require.Equal(t, []string{shop, blog, "www.beta.example"}, f.ca.Orders())

	f.hosts.set(blog, "")
	require.Eventually(t, func() bool { _, err := p.connect("third.acme.example"); return err == nil }, enough,
		10*time.Millisecond)
	p.refuses(blog)
	_, err := f.bucket().Get(t.Context(), prefix(f.ca.Directory)+"cert."+blog)
	require.Error(t, err, "its certificate is gone")
}

// One owner leaves a part of what the CA issues in a week for a registered domain to others.
func TestTheWeekOfADomain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog, "third.acme.example")
	f.hosts.set("www.acme.example", "beta")
	p := f.start(f.port, func(c *Config, _ *times) { c.DomainOrders = 3 })
	p.serial(shop)
	p.serial(blog)
	p.refuses("third.acme.example")
	p.serial("www.acme.example")
	require.Equal(t, []string{shop, blog, "www.acme.example"}, f.ca.Orders())
	e, err := f.bucket().Get(t.Context(), prefix(f.ca.Directory)+kindLedger+"acme")
	require.NoError(t, err)
	var l ledger
	require.NoError(t, json.Unmarshal(e.Value(), &l))
	require.Len(t, l.Orders, 2)
	require.Zero(t, l.Hosts["third.acme.example"].Began, "the order that had no room is given up")
}

// An order that failed is not repeated at once, in any process. Later it is.
func TestAFailedOrderWaits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	a := f.start(0) // nobody answers the CA
	a.refuses(shop)
	b := f.start(0)
	for range 5 {
		a.refuses(shop)
		b.refuses(shop)
	}
	require.Equal(t, []string{shop}, f.ca.Orders())
	require.Contains(t, a.log.String(), `"host":"shop.acme.example","owner":"acme"`)

	f.hosts.set(blog, "acme")
	c := f.start(0, func(_ *Config, tm *times) { tm.backoff, tm.again = time.Millisecond, time.Millisecond })
	c.refuses(blog)
	f.start(f.port)
	require.Eventually(t, func() bool { _, err := c.connect(blog); return err == nil }, enough, 10*time.Millisecond)
}

// An order that the CA limits waits as long as the CA says.
func TestTheCASaysWhen(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	f.ca.Limit(24 * time.Hour)
	p := f.start(f.port)
	p.refuses(shop)
	var l ledger
	require.NoError(t, p.change(t.Context(), "acme", func(now *ledger) error { l = *now; return nil }))
	require.Greater(t, time.Until(time.UnixMilli(l.Hosts[shop].Next)), 23*time.Hour)
}

// When the CA cannot be asked for the account, no owner is charged, and it is not asked for each connection.
func TestABrokenCA(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	f.ca.Break(true)
	p := f.start(f.port, func(_ *Config, tm *times) { tm.account, tm.again = time.Millisecond, time.Millisecond })
	p.refuses(shop)
	_, err := f.bucket().Get(t.Context(), prefix(f.ca.Directory)+"owner.acme")
	require.Error(t, err)
	f.ca.Break(false)
	require.Eventually(t, func() bool { _, err := p.connect(shop); return err == nil }, enough, 10*time.Millisecond)
}

// A certificate that was copied to another host is refused there, and nothing is ordered in its place.
func TestACopiedCertificateIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog)
	p := f.start(f.port)
	p.serial(shop)
	kv, dir := f.bucket(), prefix(f.ca.Directory)
	e, err := kv.Get(t.Context(), dir+"cert."+shop)
	require.NoError(t, err)
	_, err = kv.Put(t.Context(), dir+"cert."+blog, e.Value())
	require.NoError(t, err)
	q := f.start(0)
	q.refuses(blog)
	require.Contains(t, q.log.String(), "cert.blog.acme.example: its ciphertext was made for another key")
	require.Equal(t, []string{shop}, f.ca.Orders())
}

// A process with another key serves nothing, orders nothing, and says so.
func TestAProcessWithAnotherKey(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog)
	p := f.start(f.port)
	p.serial(shop)
	right := f.keys
	f.keys = newKey(t)
	wrong := f.start(0, func(_ *Config, tm *times) { tm.backoff, tm.account = time.Millisecond, time.Millisecond })
	for range 3 {
		wrong.refuses(shop)
		wrong.refuses(blog)
	}
	require.Equal(t, []string{shop}, f.ca.Orders())
	require.Equal(t, 1, strings.Count(wrong.log.String(), "cannot be opened with PINWHEEL_SECRETS_KEY of this process"))
	require.Equal(t, 1, strings.Count(wrong.log.String(), "a stored certificate cannot be used"))

	// A new key in front of the right one: then the right one can go.
	added := f.keys
	f.keys = added + right
	first := f.start(0)
	serial := first.serial(shop)
	f.keys = added
	require.Eventually(t, func() bool {
		q := f.start(0)
		defer q.stop()
		cert, err := q.connect(shop)
		return err == nil && cert.SerialNumber.String() == serial
	}, enough, 10*time.Millisecond)
	p.stop()
	f.start(f.port).serial(blog)
	require.Equal(t, []string{shop, blog}, f.ca.Orders(), "the account is the same")
}

// Certificates of hosts that are served are renewed without a connection, once, and come to all processes.
func TestRenewal(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog)
	quick := func(_ *Config, tm *times) {
		tm.renew, tm.recent, tm.look = time.Second, time.Second/2, 10*time.Millisecond
	}
	a, b := f.start(0, quick), f.start(f.port, quick)
	a.serial(blog)
	old := a.serial(shop)
	for _, p := range []*process{a, b} {
		require.Eventually(t, func() bool { return p.serial(shop) != old }, enough, 10*time.Millisecond)
	}
	f.hosts.set(blog, "")
	require.Eventually(t, func() bool { return a.idle() && b.idle() }, enough, time.Millisecond)
	orders := func(host string) (n int) {
		for _, h := range f.ca.Orders() {
			if h == host {
				n++
			}
		}
		return n
	}
	last, more := orders(blog), orders(shop)+2
	require.Eventually(t, func() bool { return orders(shop) >= more }, enough, 10*time.Millisecond)
	require.Equal(t, last, orders(blog), "it is not served any more")
	l := ledger{Hosts: map[string]*hostOrders{}}
	require.NoError(t, a.change(t.Context(), "acme", func(now *ledger) error { l = *now; return nil }))
	require.Len(t, l.Orders, 2, "renewals are not counted")
}

// A bucket that was deleted is made again by the next order.
func TestABucketThatWasDeleted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop, blog)
	p := f.start(f.port)
	p.serial(shop)
	require.NoError(t, p.js.DeleteKeyValue(t.Context(), Bucket))
	p.serial(blog)
	_, err := f.bucket().Get(t.Context(), prefix(f.ca.Directory)+"cert."+blog)
	require.NoError(t, err)
}

// Nothing of one directory is used for another: a staging directory leaves nothing to the one that follows.
func TestDirectoriesAreApart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, shop)
	p := f.start(f.port)
	serial := p.serial(shop)
	p.stop()
	f.ca = acmetest.Start(t, f.port, 90*24*time.Hour)
	require.NotEqual(t, serial, f.start(f.port).serial(shop))
	require.Equal(t, []string{shop}, f.ca.Orders())
}

func TestRootsOfADirectory(t *testing.T) {
	t.Parallel()
	roots, err := LoadRoots("")
	require.NoError(t, err)
	require.Nil(t, roots)
	_, err = LoadRoots("certificates_test.go")
	require.EqualError(t, err, "certificates for ACME: certificates_test.go has no certificate in PEM")
	_, err = LoadRoots("/no/such/file")
	require.ErrorContains(t, err, "/no/such/file")
}
