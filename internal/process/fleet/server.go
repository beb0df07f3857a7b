package fleet

import (
	"fmt"

	"github.com/nats-io/nats.go"
	"golang.org/x/mod/semver"

	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

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
