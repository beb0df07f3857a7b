package certificates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/acme"
)

// ledger is what an owner has caused at the CA. Only processes of the fleet write it, each with the revision that it
// has read. So one process at a time orders the certificate of a host.
type ledger struct {
	// Hosts have a certificate, or an order that was made for one.
	Hosts map[string]*hostOrders `json:"hosts"`
	// Orders are those of the last week for hosts without a certificate, in seconds since 1970.
	Orders []int64 `json:"orders,omitempty"`
}

// hostOrders is how the orders of a host went. Times are in milliseconds since 1970; 0 = never.
type hostOrders struct {
	Began    int64 `json:"began,omitempty"` // the order under way
	Issued   int64 `json:"issued,omitempty"`
	Failures int   `json:"failures,omitempty"` // since it was issued
	Next     int64 `json:"next,omitempty"`     // no order before
}

// later says that a certificate is not ordered now.
type later struct {
	at    time.Time // it may be ordered then
	other bool      // another process orders it, or has just got it
	why   error
}

func (l *later) Error() string { return l.why.Error() }
func (l *later) Unwrap() error { return l.why }

var (
	errElsewhere = errors.New("another process orders the certificate")
	errFailed    = errors.New("the last order of the certificate failed")
)

// failed records that the order that began has failed.
func (s *hostOrders) failed(t times, wait time.Duration) {
	again := t.longest
	if s.Failures < 16 {
		again = min(again, t.backoff<<s.Failures)
	}
	s.Next = s.Began + max(again, wait).Milliseconds()
	s.Began = 0
	s.Failures++
}

// reserve begins an order, if the ledger allows it. mine reports whether the owner still has a host. gone are those
// that it has not, and that had to leave their place.
func (l *ledger) reserve(host string, renewal bool, c Config, t times, mine func(string) bool,
	now time.Time) (gone []string, err error) {
	s := l.Hosts[host]
	if s == nil {
		if gone = l.makeRoom(c.OwnerHosts, mine); len(l.Hosts) >= c.OwnerHosts {
			return nil, &later{at: now.Add(t.backoff), why: fmt.Errorf("the owner has %d hosts with certificates, and PINWHEEL_HTTP_ACME_OWNER_HOSTS allows no more", len(l.Hosts))}
		}
		s = &hostOrders{}
		l.Hosts[host] = s
	}
	if s.Began != 0 {
		lost := time.UnixMilli(s.Began).Add(t.lost)
		if now.Before(lost) {
			return nil, &later{at: lost, other: true, why: errElsewhere}
		}
		s.failed(t, 0)
	}
	if got := time.UnixMilli(s.Issued).Add(t.recent); s.Issued != 0 && now.Before(got) {
		return nil, &later{at: got, other: true, why: errElsewhere}
	}
	if next := time.UnixMilli(s.Next); now.Before(next) {
		return nil, &later{at: next, why: errFailed}
	}
	if !renewal {
		for len(l.Orders) > 0 && l.Orders[0] <= now.Add(-week).Unix() {
			l.Orders = l.Orders[1:]
		}
		if most := ordersPerHost * c.OwnerHosts; len(l.Orders) >= most {
			return nil, &later{at: time.Unix(l.Orders[0], 0).Add(week), why: fmt.Errorf("the owner has caused %d orders of certificates in a week, and no more are allowed",
				most)}
		}
		l.Orders = append(l.Orders, now.Unix())
	}
	s.Began = now.UnixMilli()
	return gone, nil
}

// makeRoom takes the places of hosts that the owner has not any more, when there is none left.
func (l *ledger) makeRoom(most int, mine func(string) bool) (gone []string) {
	if len(l.Hosts) < most {
		return nil
	}
	for host, s := range l.Hosts {
		if !mine(host) && s.Began == 0 {
			delete(l.Hosts, host)
			gone = append(gone, host)
		}
	}
	return gone
}

// change changes the ledger of an owner. What f returns as an error leaves it as it is.
func (m *Manager) change(ctx context.Context, owner string, f func(*ledger) error) error {
	return change(ctx, m, kindLedger+owner, func(l *ledger) error {
		if l.Hosts == nil {
			l.Hosts = map[string]*hostOrders{}
		}
		return f(l)
	})
}

// change changes a ledger, as often as another process is faster. What f returns as an error leaves it as it is.
func change[Ledger any](ctx context.Context, m *Manager, key string, f func(*Ledger) error) error {
	for {
		e, err := m.read(ctx, key)
		if err != nil {
			return err
		}
		l, revision := new(Ledger), uint64(0)
		if e != nil {
			revision = e.Revision()
			if err := json.Unmarshal(e.Value(), l); err != nil {
				m.log.Error().Err(err).Str("key", key).Msg("a record of orders of certificates cannot be read: orders are counted from zero")
				l = new(Ledger)
			}
		}
		if err = f(l); err != nil {
			return err
		}
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if err = m.update(ctx, key, text, revision); !errors.Is(err, errConflict) {
			return err
		}
	}
}

// reserve begins an order of this process. The error is a *later when it must wait.
func (m *Manager) reserve(ctx context.Context, host, owner string, renewal bool) error {
	mine := func(host string) bool {
		now, ok := m.hosts.Owner(host)
		return ok && now == owner
	}
	var gone []string
	err := m.change(ctx, owner, func(l *ledger) (err error) {
		gone, err = l.reserve(host, renewal, m.cfg, m.times, mine, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	for _, host := range gone {
		if !m.hosts.Serves(host) { // else another owner has it now
			m.purge(ctx, kindCert+host)
		}
	}
	if renewal {
		return nil
	}
	return m.reserveDomain(ctx, host, owner)
}

// conclude records how an order of this process ended. An order that ended with the process counts for nothing.
func (m *Manager) conclude(ctx context.Context, host, owner string, failure error) {
	stopped := errors.Is(ctx.Err(), context.Canceled)
	err := m.change(context.WithoutCancel(ctx), owner, func(l *ledger) error {
		s := l.Hosts[host]
		switch {
		case s == nil || s.Began == 0:
		case stopped:
			s.Began = 0
		case failure != nil:
			wait, _ := acme.RateLimit(failure)
			s.failed(m.times, min(wait, week))
		default:
			*s = hostOrders{Issued: time.Now().UnixMilli()}
		}
		return nil
	})
	if err != nil {
		m.log.Warn().Err(err).Str("host", host).Str("owner", owner).Msg("how the order of a certificate ended was not recorded")
	}
}
