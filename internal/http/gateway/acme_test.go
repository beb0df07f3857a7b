package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Hosts of workers that answer HTTP requests, and named hosts of granted routes, may have a certificate. What an owner
// can make up without end may not.
func TestHostsWithCertificates(t *testing.T) {
	t.Parallel()
	only := func(owner, name string, change func(*workers.Worker)) workers.Installation {
		w := &workers.Worker{Owner: owner, Name: name, Version: activeVersion, Number: 3}
		change(w)
		return workers.Only(w)
	}
	list := &backend{installed: map[string]workers.Installation{
		"acme/site":  only("acme", "site", func(w *workers.Worker) { w.Handlers = []events.Kind{events.Fetch} }),
		"acme/files": only("acme", "files", func(w *workers.Worker) { w.Assets = &workers.Assets{} }),
		"acme/off": only("acme", "off", func(w *workers.Worker) {
			w.Handlers, w.HTTP = []events.Kind{events.Fetch}, &workers.HTTP{Enabled: new(bool)}
		}),
		"acme/tasks": only("acme", "tasks", func(w *workers.Worker) { w.Handlers = []events.Kind{events.Task} }),
	}}
	routes := NewRoutes("")
	routes.Install(routed("beta", "shop", "shop.example/b/*", "*.shop.example/*", "*/all", "site--acme.w.example/*",
		"none--acme.w.example/*"))
	routes.Install(routed("acme", "shop", "shop.example/a", "denied.example/*"))
	routes.SetPolicy("beta", workers.Policy{Hosts: []string{"*"}})
	routes.SetPolicy("acme", workers.Policy{Hosts: []string{"shop.example"}})
	h := Hosts{Domain: "w.example", Workers: list, Routes: routes}
	for host, want := range map[string]string{
		"site--acme.w.example": "acme", "files--acme.w.example": "acme", "tasks--acme.w.example": "",
		"off--acme.w.example": "", "none--acme.w.example": "", "site--beta.w.example": "",
		"3--site--acme.w.example": "", activeVersion + "--site--acme.w.example": "", "w.example": "", "site.w.example": "",
		"shop.example": "acme", "a.shop.example": "", "denied.example": "", "*.shop.example": "", "*": "", "": "",
	} {
		owner, ok := h.Owner(host)
		require.Equal(t, want, owner, host)
		require.Equal(t, ok, h.Serves(host), host)
		require.Equal(t, want != "", ok, host)
	}
	routes.Remove("acme", "shop")
	owner, _ := h.Owner("shop.example")
	require.Equal(t, "beta", owner)
}
