package fleet

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
)

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
