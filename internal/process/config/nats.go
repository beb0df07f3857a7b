package config

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

func validNATSURL(s string) bool {
	if s == "" {
		return true
	}
	for part := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || u.Hostname() == "" {
			return false
		}
	}
	return true
}

func readable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return f.Close() == nil && err == nil && info.Mode().IsRegular()
}

// notAMonitor reports whether s is not the URL of a monitoring port.
func notAMonitor(s string) bool {
	u, err := url.Parse(s)
	return err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == ""
}

// hidden is how errors show a secret.
func hidden(secret string) string {
	if secret == "" {
		return ""
	}
	return "(a secret)"
}

// hiddenURL is how errors show URLs, which may have passwords.
func hiddenURL(urls string) string {
	if strings.Contains(urls, "@") {
		return hidden(urls)
	}
	return urls
}

// oneIdentity reports whether the configuration names at most one identity for the connection.
func (c Config) oneIdentity() bool {
	n := 0
	for _, s := range []string{c.NatsContext, c.NatsCreds, c.NatsUser, c.NatsToken, c.NatsNkey} {
		if s != "" {
			n++
		}
	}
	return n <= 1
}

// natsOptions returns the options that identify the client, and those that verify the server.
func (c Config) natsOptions() ([]nats.Option, error) {
	var opts []nats.Option
	if c.NatsCreds != "" {
		opts = append(opts, nats.UserCredentials(c.NatsCreds))
	}
	if c.NatsUser != "" {
		opts = append(opts, nats.UserInfo(c.NatsUser, c.NatsPassword))
	}
	if c.NatsToken != "" {
		opts = append(opts, nats.Token(c.NatsToken))
	}
	if c.NatsNkey != "" {
		o, err := nats.NkeyOptionFromSeed(c.NatsNkey)
		if err != nil {
			return nil, fmt.Errorf("nkey seed in %s (PINWHEEL_NATS_NKEY): %w", c.NatsNkey, err)
		}
		opts = append(opts, o)
	}
	if c.NatsCA != "" {
		opts = append(opts, nats.RootCAs(c.NatsCA))
	}
	if c.NatsCert != "" {
		opts = append(opts, nats.ClientCert(c.NatsCert, c.NatsKey))
	}
	return opts, nil
}

// InboxFor is the inbox prefix of a connection that calls workers of owner. Replies to such calls may go only there.
func (c Config) InboxFor(owner string) string {
	for _, p := range c.ReplyPrefixes {
		if strings.Contains(p, events.OwnerInPrefix) {
			p = strings.ReplaceAll(p, events.OwnerInPrefix, owner)
		}
		if inbox, ok := strings.CutSuffix(p, "."); ok && inbox != "" {
			return inbox
		}
	}
	return strings.TrimSuffix(nats.InboxPrefix, ".")
}

func (c Config) Fsync() bool { return c.Durability == "fsync" }

// Embeds reports whether serve and dev run NATS themselves.
func (c Config) Embeds() bool { return c.NatsURL == "" && c.NatsContext == "" }
