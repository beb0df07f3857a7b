package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

// ConnectTimeout limits the time to connect to one server.
const ConnectTimeout = 5 * time.Second

// Connect opens the connection that c describes. The error contains the address.
func Connect(c Config, opts ...nats.Option) (*nats.Conn, error) {
	base := []nats.Option{nats.Name("pinwheel"), nats.Timeout(ConnectTimeout)}
	own, err := c.natsOptions()
	if err != nil {
		return nil, err
	}
	opts = append(append(base, own...), opts...)
	if c.NatsContext != "" {
		nc, _, err := natscontext.Connect(c.NatsContext, opts...)
		if err != nil {
			return nil, fmt.Errorf("connect with NATS context %q (PINWHEEL_NATS_CONTEXT): %w", c.NatsContext, err)
		}
		return nc, nil
	}
	nc, err := nats.Connect(c.ClientURL(), opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", Redacted(c.ClientURL()), err)
	}
	return nc, nil
}

// Redacted removes the passwords from a list of URLs.
func Redacted(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}
