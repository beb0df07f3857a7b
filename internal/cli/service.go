package cli

import (
	"runtime/debug"
	"strings"

	"github.com/nats-io/nats.go/micro"
	"golang.org/x/mod/semver"
)

// serviceName is how processes are found on $SRV.
const serviceName = "pinwheel"

// openService answers $SRV.PING, INFO and STATS for this process until it is stopped or the connection closed.
func (f *fleet) openService() (micro.Service, error) {
	s, err := micro.AddService(f.nc, micro.Config{
		Name: serviceName, Version: semanticVersion(), Description: "One process of a Pinwheel fleet",
		Metadata:     map[string]string{"node": nodeName(), "prefix": f.cfg.Prefix, "version": version()},
		StatsHandler: func(*micro.Endpoint) any { return f.stats() },
		ErrorHandler: func(_ micro.Service, err *micro.NATSError) { f.log.Warn().Err(err).Msg("NATS service") },
	})
	if err != nil {
		return nil, err
	}
	// Every process answers for itself, so that one request asks them all.
	err = s.AddEndpoint("pool", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(f.stats()) }),
		micro.WithEndpointSubject(f.cfg.Prefix+".control.pool"), micro.WithEndpointQueueGroupDisabled())
	if err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

// semanticVersion is the version of this build without the leading v; 0.0.0-devel for one that has none.
func semanticVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && semver.IsValid(info.Main.Version) {
		return strings.TrimPrefix(semver.Canonical(info.Main.Version), "v")
	}
	return "0.0.0-devel"
}
