package cli

import (
	"runtime/debug"
	"strings"

	"github.com/nats-io/nats.go/micro"
	"golang.org/x/mod/semver"
)

// serviceName is how processes are found on $SRV.
const serviceName = "pinwheel"

// openService answers $SRV.PING, INFO and STATS for this process until it is stopped or the connection closed. STATS has the figures of the
// process as data of its endpoint pool.
func (f *fleet) openService() (micro.Service, error) {
	return micro.AddService(f.nc, micro.Config{
		Name: serviceName, Version: semanticVersion(), Description: "One process of a Pinwheel fleet",
		Metadata: map[string]string{"node": nodeName(), "prefix": f.cfg.Prefix, "version": version()},
		StatsHandler: func(e *micro.Endpoint) any {
			if e.Name != "pool" {
				return nil
			}
			return f.stats()
		},
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) { f.log.Warn().Err(err).Msg("NATS service") },
	})
}

// semanticVersion is the version of this build without the leading v; 0.0.0-devel for one that has none.
func semanticVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && semver.IsValid(info.Main.Version) {
		return strings.TrimPrefix(semver.Canonical(info.Main.Version), "v")
	}
	return "0.0.0-devel"
}
