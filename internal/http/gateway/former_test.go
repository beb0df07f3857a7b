package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestHashesInNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"app-1f9c0b7a.js": true, "app.1f9c0b7a2d3e4f50.css": true, "index-BkX9dQ2z.png": true, "index-BkXadQjz.js": true,
		"chunk-4UNVH5QD.js.map": true, "index-B_x-9dQz.js": true,
		"main.abcdef12.chunk.css": true, "0a1b2c3d4e5f.woff2": true, "7h3wz5rf.js": true, "chunk-ABCDEFGH.js": true,
		"font_1a2b3c4d.woff": true,
		"plan.txt":           false, "plan-2024.txt": false, "report-20240131.pdf": false, "password.txt": false,
		"backup-PASSWORD.txt": false, "jquery-3.7.1.min.js": false, "app.js": false,
		"app-1a2b.js": false, "team-december.jpg": false, "report-final2024.pdf": false, "report2024final.pdf": false,
		"MySecret.txt": false, "index.html": false, ".1a2b3c4d": false, "polyfills.js": false, "contributors.css": false,
	} {
		require.Equal(t, want, hashed("/assets/"+name), name)
	}
}

// A file of another version answers only if it has a hash in its name, and no version that is looked at kept it from
// the public, in any way.
func TestFilesOfFormerVersions(t *testing.T) {
	t.Parallel()
	const path = "/private/app-1f9c0b7a.js"
	type change = func(v map[int]*workers.Worker)
	guard := func(n int) change {
		return func(v map[int]*workers.Worker) { v[n].Assets.WorkerFirst = []string{"/private/*"} }
	}
	http := func(n int, h workers.HTTP) change {
		return func(v map[int]*workers.Worker) { v[n].HTTP = &h }
	}
	off := false
	for name, c := range map[string]struct {
		change  change
		path    string // "" = path
		headers []string
		want    string // "" = the handler
	}{
		"a hash":                 {want: "old"},
		"no hash":                {path: "/private/plan.txt"},
		"a page":                 {path: "/private/page-1f9c0b7a.html"},
		"escaped":                {path: "/%70rivate/app-1f9c0b7a.js", want: "old"},
		"an escaped slash":       {path: "/private%2fapp-1f9c0b7a.js"},
		"guarded then":           {change: guard(1)},
		"guarded then, escaped":  {change: guard(1), path: "/%70rivate/app-1f9c0b7a.js"},
		"guarded in between":     {change: guard(2)},
		"guarded now":            {change: guard(3)},
		"no address then":        {change: http(1, workers.HTTP{Enabled: &off})},
		"no address in between":  {change: http(2, workers.HTTP{Enabled: &off})},
		"another base then":      {change: http(1, workers.HTTP{Base: "/then"})},
		"a token then":           {change: http(1, workers.HTTP{Auth: "TOKEN"})},
		"a redirect then":        {change: func(v map[int]*workers.Worker) { v[1].Assets.Files = "redirects" }},
		"another file by a rule": {change: func(v map[int]*workers.Worker) { v[1].Assets.Files = "rewrites" }},
		"the same token": {change: func(v map[int]*workers.Worker) { tokens(v) }, headers: []string{"X-Token", "s3cret"},
			want: "old"},
		"the same token, not given": {change: func(v map[int]*workers.Worker) { tokens(v) }, want: noToken.text + "\n"},
		"public only now": {change: func(v map[int]*workers.Worker) {
			tokens(v)
			v[3].HTTP.Public = workers.PublicPaths{"*": {"/*"}}
		}},
		"public now and then": {change: func(v map[int]*workers.Worker) { tokens(v); public(v) }, want: "old"},
		"public, but not in between": {change: func(v map[int]*workers.Worker) {
			tokens(v)
			public(v)
			v[2].HTTP.Public = nil
		}},
		"a handler for all other paths": {
			change: func(v map[int]*workers.Worker) { v[1].Assets.WorkerFirst = []string{"/api/*"} }, want: "old"},
		"as many versions as are tried": {change: func(v map[int]*workers.Worker) { v[2].Assets.Files = "other" },
			want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newMemoryFiles()
			old := map[string]string{path: "old", "/private/plan.txt": "old", "/private/page-1f9c0b7a.html": "old",
				"/else": "else"}
			files.put("1", old)
			files.put("redirects", old, assets.Redirect{From: path, To: "/login", Status: 302})
			files.put("rewrites", old, assets.Redirect{From: path, To: "/else", Status: 200})
			files.put("other", nil)
			files.put("2", nil)
			files.put("3", map[string]string{"/index.html": "home"})
			v := map[int]*workers.Worker{}
			var list []*workers.Worker
			for n, hash := range []string{"1", "2", "3"} {
				w := version(2, &workers.HTTP{})
				w.Number, w.Version = n+1, []string{"1-a", "2-b", "3-c"}[n]
				w.Assets, w.Handlers = &workers.Assets{Files: hash}, []events.Kind{events.Fetch}
				v[n+1], list = w, append(list, w)
			}
			if c.change != nil {
				c.change(v)
			}
			s := &seen{}
			_, addr := open(t, domain, s.handle, (&backend{secrets: map[string]string{"TOKEN": "s3cret"}}).only(list...).in,
				func(g *Gateway) { g.Files = files })
			if c.path == "" {
				c.path = path
			}
			got := text(t, getFile(t, addr, c.path, c.headers...))
			if c.want != "" {
				require.Equal(t, c.want, got)
				require.Empty(t, s.take())
				return
			}
			require.Equal(t, "ok", got)
			require.Len(t, s.take(), 1, "the handler runs")
		})
	}
}

func tokens(v map[int]*workers.Worker) {
	for _, w := range v {
		w.HTTP = &workers.HTTP{Auth: "TOKEN"}
	}
}

func public(v map[int]*workers.Worker) {
	for _, w := range v {
		w.HTTP.Public = workers.PublicPaths{"GET": {"/private/*"}}
	}
}

// Two versions in all are looked at, with other files each.
func TestOthers(t *testing.T) {
	t.Parallel()
	in := workers.Installation{Owner: "acme", Name: "shop"}
	for i := range 5 {
		in.Versions = append(in.Versions, &workers.Worker{Owner: "acme", Name: "shop", Number: i + 1,
			Version: string(rune('a' + i))})
	}
	of := func(split ...string) (versions []string) {
		in.Deployment.Split = nil
		for _, version := range split {
			in.Deployment.Split = append(in.Deployment.Split, workers.Share{Version: version, Percent: 50})
		}
		for _, w := range (service{worker: in.Versions[3], installed: in}).others() {
			versions = append(versions, w.Version)
		}
		return versions
	}
	require.Equal(t, []string{"c", "b", "a"}, of("d"))
	require.Equal(t, []string{"e", "c", "b", "a"}, of("d", "e"))
	require.Equal(t, []string{"a", "c", "b"}, of("a", "d", "gone"))
}
