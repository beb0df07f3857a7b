package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func routed(owner, name string, routes ...string) workers.Installation {
	return workers.Only(&workers.Worker{Owner: owner, Name: name, Version: "1-aaaaaaaaaaaa", Number: 1,
		Spec: workers.Spec{HTTP: &workers.HTTP{Routes: routes}}})
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	r := NewRoutes("")
	find := func(host, path string) string {
		h, ok := r.find(host, workers.NewPath(path))
		if !ok {
			return ""
		}
		return h.owner + "/" + h.worker
	}
	r.Install(routed("acme", "site", "shop.example/*", "*.shop.example/*"))
	r.Install(routed("acme", "api", "shop.example/api/*", "shop.example/exact", "*.eu.shop.example/*"))
	require.Empty(t, find("shop.example", "/"), "no host is granted")
	r.SetPolicy("acme", workers.Policy{Hosts: []string{"shop.example", "*.shop.example"}})
	for address, want := range map[string]string{
		"shop.example/": "acme/site", "shop.example/api": "acme/site", "shop.example/api/": "acme/api",
		"shop.example/api/x/y": "acme/api",
		"shop.example/exact":   "acme/api", "shop.example/exact/": "acme/site", "a.shop.example/api/x": "acme/site",
		"a.b.shop.example/":  "acme/site",
		"a.eu.shop.example/": "acme/api", "eu.shop.example/": "acme/site", "other.example/": "", "example/": "",
		"ashop.example/": "",
	} {
		host, path, _ := strings.Cut(address, "/")
		require.Equal(t, want, find(host, "/"+path), address)
	}
	// A grant that is taken back takes the routes.
	r.SetPolicy("acme", workers.Policy{Hosts: []string{"*.shop.example"}})
	require.Equal(t, []string{"", "acme/site"}, []string{find("shop.example", "/"), find("a.shop.example", "/")})
	r.SetPolicy("acme", workers.Policy{})
	require.Empty(t, find("a.shop.example", "/"))
	require.Empty(t, r.hosts)

	// An owner that has every host does not take one that is named.
	r = NewRoutes("dev")
	r.Install(routed("dev", "all", "*.example/*"))
	r.SetPolicy("acme", workers.Policy{Hosts: []string{"*"}})
	r.Install(routed("acme", "one", "a.example/x"))
	require.Equal(t, []string{"acme/one", "dev/all"}, []string{find("a.example", "/x"), find("a.example", "/y")})
	r.Remove("dev", "all")
	r.Remove("acme", "one")
	require.Empty(t, r.hosts)
	require.Empty(t, r.wanted)

	// Both versions of a split have their routes.
	in := routed("acme", "w", "a.example/1")
	in.Versions = append(in.Versions, &workers.Worker{Owner: "acme", Name: "w", Version: "2-b",
		Spec: workers.Spec{HTTP: &workers.HTTP{Routes: []string{"a.example/2", "a.example/1"}}}})
	in.Deployment.Split = []workers.Share{{Version: "1-aaaaaaaaaaaa", Percent: 90}, {Version: "2-b", Percent: 10}}
	r.Install(in)
	require.Equal(t, []string{"acme/w", "acme/w"}, []string{find("a.example", "/1"), find("a.example", "/2")})
	in.Deployment.Split = []workers.Share{{Version: "2-b", Percent: 100}}
	in.Versions = in.Versions[1:]
	r.Install(in)
	r.Remove("acme", "w")
	require.Empty(t, r.hosts)
}

// Whatever changes in whatever order, an address is found as a search of all routes finds it.
func TestRoutesModel(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	r := NewRoutes("root")
	type key struct{ owner, name string }
	installed, policies := map[key][]string{}, map[string]workers.Policy{}
	hosts := []string{"a.test", "b.a.test", "*.a.test", "*.b.a.test", "*.test", "c.test"}
	paths := []string{"/", "/*", "/x", "/x*", "/x/*", "/x/y", "/x/y*"}
	for range 3000 {
		k := key{pick("root", "acme", "beta"), pick("v", "w")}
		switch rnd.IntN(4) {
		case 0:
			p := workers.Policy{}
			for range rnd.IntN(3) {
				p.Hosts = append(p.Hosts, pick(append(hosts, "*")...))
			}
			policies[k.owner] = p
			r.SetPolicy(k.owner, p)
		case 1:
			delete(installed, k)
			r.Remove(k.owner, k.name)
		default:
			var routes []string
			for range rnd.IntN(4) {
				if route := pick(hosts...) + pick(paths...); !slices.Contains(routes, route) {
					routes = append(routes, route)
				}
			}
			installed[k] = routes
			r.Install(routed(k.owner, k.name, routes...))
		}
		host, path := pick("a.test", "b.a.test", "c.b.a.test", "c.test", "x"), pick("/", "/x", "/xy", "/x/", "/x/y", "/x/yz")
		want, best := "", ""
		for k, routes := range installed {
			for _, text := range routes {
				route, err := workers.ParseRoute(text)
				require.NoError(t, err)
				suffix, wild := strings.CutPrefix(route.Host, "*")
				matches := route.Host == host || wild && strings.HasSuffix(host, suffix)
				below := path == route.Path || route.Below && strings.HasPrefix(path, route.Path)
				if !matches || !below || k.owner != "root" && !policies[k.owner].GrantsHost(route.Host) {
					continue
				}
				// Named hosts, then long ones; whole paths, then long ones; then the first name.
				rank := fmt.Sprintf("%v %05d %v %05d %s", !wild, len(route.Host), !route.Below, len(route.Path),
					invert(k.owner+"/"+k.name))
				if best == "" || rank > best {
					want, best = k.owner+"/"+k.name, rank
				}
			}
		}
		got := ""
		if h, ok := r.find(host, workers.NewPath(path)); ok {
			got = h.owner + "/" + h.worker
		}
		require.Equal(t, want, got, "%s%s", host, path)
	}
}

// invert turns the order of texts around.
func invert(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = 255 - b[i]
	}
	return string(b)
}

func TestRequestsFindRoutes(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle, func(g *Gateway) {
		g.Routes.SetPolicy("acme", workers.Policy{Hosts: []string{"*"}})
		g.Routes.Install(routed("acme", "site", "*.example/*", "shop--beta.w.test/*"))
	})
	status, _, _ := ask(t, addr, "GET", "WWW.Example.:80", "/a%2Fb?c")
	require.Equal(t, 200, status)
	e := s.take()[0]
	require.Equal(t, []string{"acme", "site", "http://WWW.Example.:80/a%2Fb?c"}, []string{e.Owner, e.Worker, e.URL})
	_, _, _ = ask(t, addr, "GET", "shop--beta.w.test", "/")
	require.Equal(t, "beta", s.take()[0].Owner, "the host of a worker is its own")
	status, _, _ = ask(t, addr, "GET", "example", "/")
	require.Equal(t, 404, status)
}
