package config

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/pinwheel-run/pinwheel/events"
)

// SourceContexts are the NATS contexts of Sources by the names of their connections. nil = Sources is wrong.
func (c Config) SourceContexts() map[string]string {
	contexts := map[string]string{}
	for _, text := range c.Sources {
		name, context, ok := strings.Cut(text, "=")
		if !ok {
			context = name
		}
		if _, twice := contexts[name]; twice || !events.ValidName(name) || context == "" {
			return nil
		}
		contexts[name] = context
	}
	return contexts
}

// ConnectSource opens a connection of Sources. It reconnects forever, also if no server answers now. domain is that of
// its JetStream; "" = the account's own.
func (c Config) ConnectSource(name string, opts ...nats.Option) (nc *nats.Conn, domain string, err error) {
	context := c.SourceContexts()[name]
	opts = append([]nats.Option{nats.Name("pinwheel"), nats.Timeout(ConnectTimeout)}, opts...)
	nc, settings, err := natscontext.Connect(context, append(opts, nats.RetryOnFailedConnect(true))...)
	if err != nil {
		return nil, "", fmt.Errorf("connect with NATS context %q (PINWHEEL_SOURCES): %w", context, err)
	}
	return nc, settings.JSDomain, nil
}
