package console

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/http/localhost"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
)

// Config configures a Console.
type Config struct {
	// Addr is where it listens, host:port.
	Addr string
	// Hosts are names by which browsers may reach it, beside localhost and IP addresses.
	Hosts []string
	// ViewToken grants read-only access. Empty disables it.
	ViewToken string
	// OperateToken grants access that may also change things. Empty disables it.
	OperateToken string
	// Open lets everyone who reaches it see and act: without a login. Only for a machine whose NATS is open too.
	Open bool
	// TraceURL is the address of a trace in a viewer of traces, with {trace} for its ID. Empty: IDs are no links.
	TraceURL string

	Prefix string // of the fleet's subjects
	// ControlToken is the token for guarded control endpoints. Empty: NATS decides, or they are off.
	ControlToken string
	// Examine runs the checks of the doctor.
	Examine func(context.Context) []doctor.Line
	Log     zerolog.Logger
}

// Validate returns an error that names the variable that is wrong.
func (c Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("PINWHEEL_CONSOLE_ADDR is %q: it is host:port", c.Addr)
	case c.Open && !loopback(host):
		return fmt.Errorf("PINWHEEL_CONSOLE_ADDR is %q: without a token it is a loopback address; set PINWHEEL_CONSOLE_TOKEN or PINWHEEL_CONTROL_TOKEN", c.Addr)
	case !c.Open && c.ViewToken == "" && c.OperateToken == "":
		return fmt.Errorf("PINWHEEL_CONSOLE_ADDR is %q, and nobody can log in: set PINWHEEL_CONSOLE_TOKEN to see, or PINWHEEL_CONTROL_TOKEN to act too", c.Addr)
	case c.ViewToken != "" && c.ViewToken == c.OperateToken:
		return fmt.Errorf("PINWHEEL_CONSOLE_TOKEN is the same as PINWHEEL_CONTROL_TOKEN: who may only see would act")
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// knows reports whether a request may have this Host. A page of another site can make a name of its own point to this
// machine (DNS rebinding), but neither localhost nor an address.
func (c Config) knows(hostport string) bool {
	if localhost.Is(hostport) {
		return true
	}
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return slices.Contains(c.Hosts, strings.ToLower(strings.TrimSuffix(host, ".")))
}
