package fleet

import (
	"context"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// controlled is the process as the package control uses it.
type controlled struct {
	process *Process
	drain   func() // makes the process drain
}

func (c controlled) Stats() any { return c.process.Stats() }

func (c controlled) Active(target string) (version string, number int) {
	owner, name, _ := strings.Cut(target, "/")
	w := c.process.catalog.Active(owner, name)
	if w == nil {
		return "", 0
	}
	return w.Version, w.Number
}

func (c controlled) Members() (self control.Member, all []control.Member, left []string) {
	m := c.process.members
	return m.self, m.known(), m.gone()
}

func (c controlled) Drain() { c.drain() }

// openControl answers control requests for this process. drain must make the process drain.
func (p *Process) openControl(ctx context.Context, drain func()) (*control.Server, error) {
	return control.Open(ctx, p.nc, control.Config{
		Prefix: p.cfg.Prefix, Node: nodeName(), Build: config.Version(), Token: p.cfg.ControlToken, ByPermissions: p.cfg.Control == config.ControlByPermissions,
		ReplyPrefixes: p.cfg.ReplyPrefixes, AllowPrivateAddresses: p.cfg.AllowPrivateAddresses, DrainTimeout: p.cfg.DrainTimeout,
		Workers: p.store, Policies: p.policies, Process: controlled{p, drain}, Log: p.log,
	})
}
