package sources

import (
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Conn is a connection to a NATS account that has sources.
type Conn struct {
	NC *nats.Conn
	JS jetstream.JetStream
	// API is the first part of the subjects of its JetStream, such as "$JS.API." or "$JS.hub.API.".
	API string
}

// NewConn makes a Conn. domain is that of its JetStream; "" = the account's own.
func NewConn(nc *nats.Conn, domain string) (*Conn, error) {
	if domain == "" {
		js, err := jetstream.New(nc)
		return &Conn{nc, js, "$JS.API."}, err
	}
	js, err := jetstream.NewWithDomain(nc, domain)
	return &Conn{nc, js, "$JS." + domain + ".API."}, err
}

// Conns are the connections by name. "" is that of the fleet.
type Conns map[string]*Conn

// names lists the connections that a manifest can name.
func (c Conns) names() string {
	list := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(name string) bool { return name == "" })
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
