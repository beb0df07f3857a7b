package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"golang.org/x/mod/semver"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// link is the connection of a process to NATS, and what the process knows of the server. The zero value is not
// connected.
type link struct {
	nc      *nats.Conn
	server  *natsd.Server // nil when NATS is not embedded
	sources sources.Conns // to all accounts with sources, nc among them
	pulse   *pulse        // checks whether the NATS server answers
	sync    doctor.Sync   // what is known about when NATS writes to disk
}

// open connects to NATS, or starts one inside the process.
func (l *link) open(cfg config.Config, log zerolog.Logger) error {
	if err := l.connect(cfg, log); err != nil {
		return err
	}
	l.pulse = &pulse{nc: l.nc}
	own, err := sources.NewConn(l.nc, "")
	if err != nil {
		return err
	}
	l.sources = sources.Conns{"": own}
	if err := l.connectSources(cfg, log); err != nil {
		return err
	}
	return checkServer(l.nc)
}

func (l *link) connect(cfg config.Config, log zerolog.Logger) (err error) {
	opts := append(options(log), nats.RetryOnFailedConnect(false))
	if cfg.NatsURL == "" && cfg.NatsContext == "" {
		if l.server, err = openEmbedded(cfg, log); err != nil {
			return err
		}
		l.nc, err = nats.Connect("", append(opts, l.server.InProcess())...)
		return err
	}
	l.nc, err = config.Connect(cfg, opts...)
	return err
}

// connectSources opens the connections of PINWHEEL_SOURCES.
func (l *link) connectSources(cfg config.Config, log zerolog.Logger) error {
	for name := range cfg.SourceContexts() {
		nc, domain, err := cfg.ConnectSource(name, options(log.With().Str("connection", name).Logger())...)
		if err != nil {
			return err
		}
		if l.sources[name], err = sources.NewConn(nc, domain); err != nil {
			return err
		}
	}
	return nil
}

// options are those of every connection of a process.
func options(log zerolog.Logger) []nats.Option {
	often := repeats.New(log)
	return []nats.Option{
		nats.Name("pinwheel"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn().Err(err).Msg("NATS is away")
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info().Msg("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			line := often.Warn(err, "NATS")
			if sub != nil { // it dropped messages, is not permitted, or a message has headers that nats.go cannot read
				line = line.Str("subject", sub.Subject)
			}
			line.Send()
		}),
	}
}

// url is the address where clients connect.
func (l *link) url() string {
	if l.server != nil {
		return l.server.URL()
	}
	return l.nc.ConnectedUrl()
}

// check returns nil while the server answers.
func (l *link) check() error {
	if !l.nc.IsConnected() {
		return errors.New("NATS is away")
	}
	return l.pulse.check()
}

// publish publishes what may be left out while NATS is away: the client library would keep it in the memory that events
// and replies need then.
func (l *link) publish(subject string, data []byte) error {
	if !l.nc.IsConnected() {
		return nats.ErrConnectionReconnecting
	}
	return l.nc.Publish(subject, data)
}

func (l *link) close() {
	for _, c := range l.sources {
		c.NC.Close()
	}
	if l.nc != nil {
		l.nc.Close()
	}
	if l.server != nil {
		l.server.Close()
	}
}

// openEmbedded starts the NATS of this process. If another process uses the data or the port, the error says what to
// do.
func openEmbedded(c config.Config, log zerolog.Logger) (*natsd.Server, error) {
	server, err := natsd.Open(natsd.Config{StoreDir: c.Data, Port: c.NatsPort, SyncAlways: c.Fsync(), Log: log})
	var inUse *natsd.InUseError
	var taken *natsd.PortTakenError
	switch {
	case errors.As(err, &inUse):
		return nil, fmt.Errorf("%w: to add a process to that fleet set PINWHEEL_NATS_URL=%s; for a fleet of its own name another directory in PINWHEEL_DATA (it is %q)",
			err, cmp.Or(inUse.Holder.NATS, "nats://127.0.0.1:PORT"), c.Data)
	case errors.As(err, &taken):
		return nil, fmt.Errorf("%w: to use the NATS that listens there set PINWHEEL_NATS_URL=nats://127.0.0.1:%d; for a NATS of its own name a free PINWHEEL_NATS_PORT, and a PINWHEEL_DATA that no other process has",
			err, taken.Port)
	}
	return server, err
}

// checkServer refuses a server that lacks what the fleet needs, before Pinwheel creates anything on it. It accepts a
// version that it cannot parse.
func checkServer(nc *nats.Conn) error {
	v := nc.ConnectedServerVersion()
	if v := "v" + v; semver.IsValid(v) && semver.Compare(semver.MajorMinor(v), "v"+doctor.MinServer) < 0 {
		return &inventory.FaultError{Err: fmt.Errorf("nats-server at %s is %s: Pinwheel needs %s or later", nc.ConnectedUrlRedacted(),
			nc.ConnectedServerVersion(), doctor.MinServer)}
	}
	return nil
}

// natsPorts are those of URLs without a port.
var natsPorts = map[string]string{"ws": "80", "wss": "443", "nats": "4222", "tls": "4222"}

// natsDefault are the ports that a server of NATS has unless its configuration says otherwise: of clients, of routes,
// of gateways, of leaf nodes, and of its monitoring.
var natsDefault = []uint16{4222, routePort, gatewayPort, leafPort, 8222}

// Ports by which servers of NATS, and nothing else, speak to each other.
const (
	routePort   = 6222
	gatewayPort = 7222
	leafPort    = 7422
)

// isNATS reports whether an address is one of the NATS servers of the fleet or of its sources, as far as the process
// knows them. A server has more addresses than the one by which it is known: so each address that is not public counts,
// with the port of one, or with a port by which such servers speak to each other. The ports of the web are those of
// many servers: with these a known address counts alone. Any goroutine may call it once the link is open.
func (l *link) isNATS(to netip.AddrPort) bool {
	switch to.Port() {
	case routePort, gatewayPort, leafPort:
		if !egress.IsPublic(to.Addr()) {
			return true
		}
	}
	if l.server != nil && isServer(l.server.URL(), to) {
		return true
	}
	for _, c := range l.sources {
		if isServer("nats://"+c.NC.ConnectedAddr(), to) {
			return true
		}
		for _, known := range c.NC.Servers() { // those that the servers told of are among them
			if isServer(known, to) {
				return true
			}
		}
	}
	return false
}

func isServer(known string, to netip.AddrPort) bool {
	u, err := url.Parse(known)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	same := err == nil && ip.Unmap() == to.Addr()
	port := strconv.Itoa(int(to.Port()))
	switch {
	case cmp.Or(u.Port(), natsPorts[u.Scheme]) != port:
		return same && slices.Contains(natsDefault, to.Port())
	case port == natsPorts["ws"] || port == natsPorts["wss"]:
		return same
	}
	return same || !egress.IsPublic(to.Addr())
}
