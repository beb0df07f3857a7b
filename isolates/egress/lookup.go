package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Bounds of looking up a name.
const (
	lookupTime   = 5 * time.Second // as a connection may take
	maxAddresses = 64              // of an answer
)

// Lookup returns the addresses of a name, for an owner. ctx bounds how long that takes.
type Lookup func(ctx context.Context, owner, host string) ([]netip.Addr, error)

// Lookup returns the addresses of a name that the guard lets handlers connect to, for a process that speaks for the
// owner. A name that has only others does not exist: who asks does not learn the names of private networks. It takes
// one of the owner's connections while it lasts, and waits for it. The error is Told.
func (c *Connections) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	c.want(1, 0)
	defer c.Release()
	if err := c.take(ctx); err != nil {
		return nil, tellLookup(err, host)
	}
	defer func() { <-c.places }()
	look := c.client.lookup
	if c.client.Lookup != nil {
		look = c.client.Lookup
	}
	found, err := look(ctx, c.owner, host)
	if err == nil && len(found) == 0 {
		err = errNoHost
	}
	if err != nil {
		return nil, tellLookup(err, host)
	}
	return found, nil
}

var errNoHost = &net.DNSError{Err: "no such host", IsNotFound: true}

// lookup asks the resolver of the system, as who connects does, and leaves out what the guard refuses.
func (f *Client) lookup(ctx context.Context, _, host string) ([]netip.Addr, error) {
	found, err := newResolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	reachable := found[:0]
	for _, a := range found {
		a = a.Unmap()
		if a.Zone() == "" && f.checkIP(a) == nil && len(reachable) < maxAddresses {
			reachable = append(reachable, a)
		}
	}
	return reachable, nil
}

// newResolver returns a resolver for one lookup. Those who look up the same name by one resolver share a query, which
// then goes on when all of them have gone. An answer comes in one packet, so it has at most some 75 addresses: the
// resolver sorts them, which takes a system call for each.
func newResolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, server string) (net.Conn, error) {
		if strings.HasPrefix(network, "tcp") {
			return nil, errLongAnswer
		}
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}}
}

var errLongAnswer = errors.New("the answer has too many addresses")

// tellLookup says why a name has no addresses. The resolver's own words name its server.
func tellLookup(err error, host string) Told {
	if told, ok := errors.AsType[Told](err); ok {
		return told
	}
	code := "EAI_AGAIN"
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound, strings.Contains(host, "\x00"):
		code = "ENOTFOUND"
	case errors.Is(err, context.DeadlineExceeded), dns != nil && dns.IsTimeout:
		code = "ETIMEDOUT"
	}
	return Told{Text: "lookup of " + host + " failed", Code: code}
}
