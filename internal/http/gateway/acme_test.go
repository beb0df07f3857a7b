package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// Hosts of workers that answer HTTP requests, and named hosts of granted routes, may have a certificate. What an owner
// can make up without end may not.
func TestHostsWithCertificates(t *testing.T) {
	t.Parallel()
	only := func(owner, name string, change func(*events.Worker)) events.Installation {
		w := &events.Worker{Owner: owner, Name: name, Version: activeVersion, Number: 3}
		change(w)
		return events.Only(w)
	}
	workers := &backend{installed: map[string]events.Installation{
		"acme/site":  only("acme", "site", func(w *events.Worker) { w.Handlers = []events.Kind{events.Fetch} }),
		"acme/files": only("acme", "files", func(w *events.Worker) { w.Assets = &events.Assets{} }),
		"acme/off": only("acme", "off", func(w *events.Worker) {
			w.Handlers, w.HTTP = []events.Kind{events.Fetch}, &events.HTTP{Enabled: new(bool)}
		}),
		"acme/tasks": only("acme", "tasks", func(w *events.Worker) { w.Handlers = []events.Kind{events.Task} }),
	}}
	routes := NewRoutes("")
	routes.Install(routed("beta", "shop", "shop.example/b/*", "*.shop.example/*", "*/all", "site--acme.w.example/*",
		"none--acme.w.example/*"))
	routes.Install(routed("acme", "shop", "shop.example/a", "denied.example/*"))
	routes.SetPolicy("beta", events.Policy{Hosts: []string{"*"}})
	routes.SetPolicy("acme", events.Policy{Hosts: []string{"shop.example"}})
	h := Hosts{Domain: "w.example", Workers: workers, Routes: routes}
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
