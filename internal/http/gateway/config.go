package gateway

import (
	"net/netip"
	"time"
)

// Config is what the operator sets. The zero value of a field that has a default means the default.
type Config struct {
	// Domain is what the names of hosts end with: WORKER--OWNER.DOMAIN. "" = no worker has a host.
	Domain string
	// Paths is the owner whose workers are also found at /WORKER/ of every other host; "" = none.
	Paths string
	// Hosts are those that requests may have, beside localhost, addresses, what ends with Domain, and what a route names:
	// "shop.example", "*.example" for every host below, "*" for every host. None = every host.
	Hosts []string
	// Trust are the addresses whose X-Forwarded-For and X-Forwarded-Proto count.
	Trust []netip.Prefix
	// MaxConnections bounds the open connections. More wait to be accepted. Default 10 000.
	MaxConnections int
	// OwnerRequests bounds the requests to workers of one owner at the same time. Default 1000.
	OwnerRequests int
	// Memory is for bodies that wait for a worker or for a client, bytes. An owner may use as much as is free. Default
	// 256 MiB.
	Memory int64
	// MaxBody is the size of the largest request body, bytes. Default 1 GiB.
	MaxBody int64
	// Wait is how long a request may wait until its worker starts. Default 30 s.
	Wait time.Duration
	// Certificate has the gateway speak TLS; nil = plain HTTP.
	Certificate *Certificate
	// Certificates has the gateway speak TLS with a certificate for each host; nil = with Certificate, if that is set.
	Certificates Certificates
	// Messages has responses of failed events say why in full. It is for developers.
	Messages bool
	// Addresses are those of the workers, for the response to a request that no worker answers; nil = it has none. It is
	// for developers.
	Addresses func() []string
	// Log has each request logged.
	Log bool
}

// OrDefault sets the fields that are zero and have a default.
func (c Config) OrDefault() Config {
	if c.MaxConnections == 0 {
		c.MaxConnections = 10_000
	}
	if c.OwnerRequests == 0 {
		c.OwnerRequests = 1000
	}
	if c.Memory == 0 {
		c.Memory = 256 << 20
	}
	if c.MaxBody == 0 {
		c.MaxBody = 1 << 30
	}
	if c.Wait == 0 {
		c.Wait = 30 * time.Second
	}
	return c
}

// Bounds that no operator sets.
const (
	maxHeaders     = 100      // of a request
	maxHeader      = 8 << 10  // bytes of the name and the value of one
	maxHeaderBytes = 64 << 10 // of the request line and all headers
	wholeBody      = 64 << 10 // a request body up to this size is read before its event runs
	// of a longer one, which is read while the event runs. A write of 64 KiB is two packets of loopback
	partBytes   = 48 << 10
	maxPart     = 128 << 10 // of one that JavaScript reads, when more has come
	streamBytes = 64 << 10  // of a request body of HTTP/2 that may be ahead
	window      = 256 << 10 // bytes of a response body that a worker may be ahead of the client
	maxStreams  = 100       // requests at the same time on one connection of HTTP/2
	maxFrame    = 16 << 10  // bytes of one of HTTP/2
	bodyRate    = 4 << 10   // bytes of a request body for which a client gets a second more time
)

// times are how long the gateway waits for clients. Tests have shorter ones.
type times struct {
	header time.Duration // for all headers of a request
	idle   time.Duration // between requests on a connection
	write  time.Duration // until the client takes a piece of the response
	body   time.Duration // for a request body in all, and a second more for each bodyRate bytes
	piece  time.Duration // for one piece of it, however fast those before came
	rest   time.Duration // for what a handler did not read of it
	leave  time.Duration // for which a process that ends still answers on open connections
}

var defaultTimes = times{
	header: 10 * time.Second, idle: 75 * time.Second, write: 30 * time.Second, body: 10 * time.Second,
	piece: 30 * time.Second, rest: 2 * time.Second, leave: time.Second,
}
