package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/console"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// consoleAddr is where the console is unless PINWHEEL_CONSOLE_ADDR says otherwise.
const consoleAddr = "127.0.0.1:8423"

func newConsoleCommand(e *env) *cobra.Command {
	var addr string
	c := e.command(cobra.Command{
		Use: "console", Short: "Serve the console of a fleet on this machine", Args: cobra.NoArgs,
		Long: "Serves the console, a web page for operators, until it is interrupted, and prints a link that logs in. It uses the\n" +
			"control endpoints of the fleet with PINWHEEL_CONTROL_TOKEN, as other commands do. Who has the link may act.",
		Example: "  pinwheel console\n  PINWHEEL_NATS_CONTEXT=production pinwheel console --addr 127.0.0.1:9000",
	}, func(ctx context.Context, _ []string) error {
		if err := e.refuseOwner("the console"); err != nil {
			return err
		}
		log, err := config.NewLogger(e.Raw.Err, e.cfg)
		if err != nil {
			return err
		}
		cfg, key := consoleConfig(&e.cfg, e.version, log), rand.Text()
		cfg.Addr, cfg.OperateToken = cmp.Or(addr, cfg.Addr, consoleAddr), key
		s, err := console.Open(cfg)
		if err != nil {
			return usage("%w", err)
		}
		nc, err := e.dial("", consoleConnection...)
		if err != nil {
			s.Close()
			return err
		}
		defer nc.Close()
		fmt.Fprintf(e.Out, "Console on http://%s/login#%s\n", s.Addr(), key)
		return s.Serve(ctx, nc)
	})
	c.Flags().StringVar(&addr, "addr", "", "`HOST:PORT` where it listens, in place of PINWHEEL_CONSOLE_ADDR (default "+consoleAddr+")")
	return c
}

// consoleConnection has the connection of a console come back whenever NATS does. What a person asks for while it is
// away fails at once, and does not happen later.
var consoleConnection = []nats.Option{nats.MaxReconnects(-1), nats.ReconnectBufSize(-1)}

// consoleConfig is the console's part of cfg. The doctor goes by what cfg is then: where NATS is may come to be known
// later.
func consoleConfig(cfg *config.Config, version string, log zerolog.Logger) console.Config {
	return console.Config{
		Addr: cfg.ConsoleAddr, Hosts: cfg.ConsoleHosts, ViewToken: cfg.ConsoleToken, OperateToken: cfg.ControlToken,
		TraceURL: cfg.ConsoleTraceURL,
		Prefix:   cfg.Prefix, ControlToken: cfg.ControlToken, Log: log,
		Examine: func(ctx context.Context) []doctor.Line { return examine(ctx, *cfg, version, doctorProgress) },
	}
}

// besideFleet is the console of a process that runs a fleet. The zero value is none.
type besideFleet struct {
	console *console.Console
	cfg     config.Config
	running sync.WaitGroup
	err     error
}

// begin serves the console until ctx is done. url is where the NATS of the fleet is. end is called when it cannot.
func (b *besideFleet) begin(ctx context.Context, url string, end func()) {
	if b.console == nil {
		return
	}
	if b.cfg.Embeds() {
		b.cfg.NatsURL = url
	}
	b.running.Go(func() {
		nc, err := config.Connect(b.cfg, consoleConnection...)
		if err == nil {
			defer nc.Close()
			err = b.console.Serve(ctx, nc)
		}
		if err != nil {
			b.err = fmt.Errorf("console: %w", err)
			end()
		}
	})
}

// close ends a console, whose context is done. It returns err, or else why the console could not go on.
func (b *besideFleet) close(err error) error {
	b.running.Wait()
	if b.console != nil {
		b.console.Close()
	}
	return cmp.Or(err, b.err)
}

// addr is where the console is; "" = there is none.
func (b *besideFleet) addr() string {
	if b.console == nil {
		return ""
	}
	return b.console.Addr()
}

// openDevConsole opens the console of dev. Without a token it is open to this machine, as NATS is. If another program
// has the usual port, it takes a free one.
func openDevConsole(cfg config.Config, version string, log zerolog.Logger, open bool) (*besideFleet, error) {
	b := &besideFleet{cfg: cfg}
	c := consoleConfig(&b.cfg, version, log)
	c.Open = open
	if open {
		c.OperateToken = ""
	}
	c.Addr = cmp.Or(c.Addr, consoleAddr)
	var err error
	b.console, err = console.Open(c)
	var taken *net.OpError
	if errors.As(err, &taken) && cfg.ConsoleAddr == "" {
		c.Addr = "127.0.0.1:0"
		b.console, err = console.Open(c)
	}
	return b, err
}
