package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/publicsuffix"
)

// domainLedger is what the fleet has caused at the CA for one registered domain. A CA that everybody uses issues so
// many certificates for a registered domain in a week, and the hosts of all owners may be below one.
type domainLedger struct {
	Orders []domainOrder `json:"orders"` // of the last week, for hosts without a certificate
}

type domainOrder struct {
	Owner string `json:"owner"`
	At    int64  `json:"at"` // seconds since 1970
}

// registered is the registered domain of a host: that below a public suffix. A host without one is its own.
func registered(host string) string {
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host
}

// reserve counts an order of an owner, if the week has room. An owner may have caused at most as many as are left. So
// owners that take all they can get have equal parts, and always leave one for another owner.
func (l *domainLedger) reserve(domain, owner string, most int, now time.Time) error {
	for len(l.Orders) > 0 && l.Orders[0].At <= now.Add(-week).Unix() {
		l.Orders = l.Orders[1:]
	}
	mine := 0
	for _, o := range l.Orders {
		if o.Owner == owner {
			mine++
		}
	}
	if left := most - len(l.Orders); mine >= left {
		return &later{at: time.Unix(l.Orders[0].At, 0).Add(week), why: fmt.Errorf(
			"for hosts of %s %d of %d orders in a week are left, and the owner has caused %d: it may cause as many as are left",
			domain, left, most, mine)}
	}
	l.Orders = append(l.Orders, domainOrder{owner, now.Unix()})
	return nil
}

// reserveDomain counts an order for a host that has no certificate, in the week of its registered domain. When there is
// no room, the order of the owner that began is given up.
func (m *Manager) reserveDomain(ctx context.Context, host, owner string) error {
	if m.cfg.DomainOrders == 0 {
		return nil
	}
	domain := registered(host)
	err := change(ctx, m, kindDomain+domain, func(l *domainLedger) error {
		return l.reserve(domain, owner, m.cfg.DomainOrders, time.Now())
	})
	if err == nil {
		return nil
	}
	undone := m.change(context.WithoutCancel(ctx), owner, func(l *ledger) error {
		if s := l.Hosts[host]; s != nil {
			s.Began = 0
		}
		l.Orders = l.Orders[:max(0, len(l.Orders)-1)]
		return nil
	})
	return errors.Join(err, undone)
}
