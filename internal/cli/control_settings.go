package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// settingsJSON is what a process says of its configuration: what whoever deploys has to know.
type settingsJSON struct {
	AllowPrivateAddresses []string `json:"allowPrivateAddresses"`
}

// settings tells settings of this process. All processes of a fleet have the same.
func (c *control) settings(_ context.Context, r request) (any, error) {
	if err := decodeRequest(r.data, &struct{}{}); err != nil {
		return nil, err
	}
	return settingsJSON{append([]string{}, c.f.cfg.AllowPrivateAddresses...)}, nil
}

// settingsWait is how long a fleet may take to tell its settings.
const settingsWait = time.Second

// allowed is what workers of the fleet may reach although it is not public; own, this command's setting, when no process of the fleet says.
func (c *remote) allowed(ctx context.Context, own []string) []string {
	ctx, cancel := context.WithTimeout(ctx, settingsWait)
	defer cancel()
	m, err := c.nc.RequestWithContext(ctx, string(c.subjects)+".control.settings", nil)
	var s settingsJSON
	if err != nil || m.Header.Get(micro.ErrorCodeHeader) != "" || json.Unmarshal(m.Data, &s) != nil {
		return own
	}
	return s.AllowPrivateAddresses
}
