package control

import (
	"runtime/debug"
	"strings"

	"github.com/nats-io/nats.go/micro"
	"golang.org/x/mod/semver"
)

// serviceName is the name of the processes on $SRV.
const serviceName = "pinwheel"

// openService answers $SRV.PING, INFO and STATS for this process until the service is stopped or the connection is
// closed. In STATS, the data of the endpoint pool are the figures of the process.
func (s *Server) openService() (micro.Service, error) {
	return micro.AddService(s.nc, micro.Config{
		Name: serviceName, Version: semanticVersion(), Description: "One process of a Pinwheel fleet",
		Metadata: map[string]string{"node": s.cfg.Node, "prefix": s.cfg.Prefix, "version": s.cfg.Build},
		StatsHandler: func(e *micro.Endpoint) any {
			if e.Name != "pool" {
				return nil
			}
			return s.cfg.Process.Stats()
		},
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) { s.cfg.Log.Warn().Err(err).Msg("NATS service") },
	})
}

// semanticVersion is the version of this build without the leading v. It is 0.0.0-devel for a build without a version.
func semanticVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && semver.IsValid(info.Main.Version) {
		return strings.TrimPrefix(semver.Canonical(info.Main.Version), "v")
	}
	return "0.0.0-devel"
}
