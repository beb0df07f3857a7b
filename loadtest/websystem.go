package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/pinwheel-run/pinwheel/loadtest/webclient"
)

// system is a server of HTTP requests.
type system struct {
	name, about string
	webs        []string
	program     string                   // in node_modules, or on the machine; "": this program
	args        func(s webSite) []string // a file is one of peers/
	needs       string                   // package of npm, if program is not in it
}

// webSite is where a system is to answer.
type webSite struct {
	dir     string // with files of the system
	port    string
	owners  int
	handler string // the name of its file in workers/, without extension
}

func systems() []system {
	return []system{
		{name: report.Ours, about: "an isolate for each owner, limits on", webs: report.Webs()},
		{name: "workerd", about: "an isolate for each owner, behind a worker that chooses it", webs: []string{report.WebJSON, report.WebPipe},
			program: "workerd/bin/workerd",
			args:    func(s webSite) []string { return []string{"serve", filepath.Join(s.dir, workerdConfig)} }},
		{name: "deno", about: "deno serve: one thread, one isolate for all", webs: []string{report.WebJSON, report.WebKernels},
			program: "deno/deno", args: func(s webSite) []string {
				return []string{"serve", "--allow-all", "--quiet", "--no-lock", "--no-config", "--host", "127.0.0.1", "--port",
					s.port, "../workers/" + s.handler + ".mjs"}
			}},
		{name: "bun", about: "bun serve: one thread, one isolate for all", webs: []string{report.WebJSON, report.WebKernels,
			report.WebPipe}, program: "bun/bin/bun.exe",
			args: func(webSite) []string { return []string{"run", "http-bun.mjs"} }},
		{name: "node", about: "node:http, with a Request and a Response: one thread, one isolate for all", webs: []string{report.WebJSON, report.WebKernels,
			report.WebPipe}, program: "node", args: func(s webSite) []string {
			if s.handler == report.WebPipe {
				return []string{"http-node-streams.mjs"}
			}
			return []string{"http-node.mjs"}
		}},
		{name: "miniflare", about: "workerd with miniflare's bindings, as wrangler dev has them", webs: []string{report.WebCalls}, program: "node",
			needs: "miniflare",
			args:  func(webSite) []string { return []string{"miniflare.mjs"} }},
		{name: report.WebFloor, about: "no JavaScript: Go's net/http, and a hand-off to a pinned thread", webs: []string{report.WebJSON},
			args: func(s webSite) []string { return []string{pinnedServer, s.port} }},
		{name: "go", about: "net/http of Go: http.FileServer, or io.Copy from the request to the response", webs: []string{report.WebFile, report.WebPipe},
			args: func(s webSite) []string {
				if s.handler == report.WebPipe {
					return []string{echoServer, s.port}
				}
				return []string{fileServer, s.dir, s.port}
			}},
	}
}

func systemsOf(web string) []system {
	return slices.DeleteFunc(systems(), func(s system) bool { return !slices.Contains(s.webs, web) })
}

func findSystem(web, name string) (system, error) {
	var names []string
	for _, s := range systemsOf(web) {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return system{}, fmt.Errorf("--system %q: for --case %s it is one of %s", name, web, strings.Join(names, ", "))
}

func describeSystems() string {
	text := ""
	for _, s := range systems() {
		text += fmt.Sprintf("  %-10s %s\n", s.name, s.about)
	}
	return text
}

// binary returns the path of the system's program. The starters in node_modules/.bin would be processes of their own.
func (s system) binary(peerDir string) (string, error) {
	switch s.program {
	case "":
		return os.Executable()
	case "node":
		path, err := exec.LookPath("node")
		if err != nil {
			err = fmt.Errorf("%s needs node, 20 or later, on PATH", s.name)
		} else if _, missing := os.Stat(filepath.Join(peerDir, "node_modules", s.needs)); missing != nil && s.needs != "" {
			err = fmt.Errorf("%s needs its package of npm", s.name)
		}
		return path, err
	}
	path := filepath.Join(peerDir, "node_modules", filepath.FromSlash(s.program))
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s needs its package of npm", s.name)
	}
	return path, nil
}

// missingSystems names the systems that must be installed, and how to install them.
func (r *runner) missingSystems(ctx context.Context, cases []report.Case) error {
	var errs []error
	asked := map[string]bool{report.Ours: true}
	for _, c := range cases {
		if c.Web == "" || asked[c.System] {
			continue
		}
		asked[c.System] = true
		s, err := findSystem(c.Web, c.System)
		if err != nil {
			return err
		}
		if err := r.findPeers(ctx); err != nil {
			return err
		}
		if _, err := s.binary(r.peerDir); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	errs = append(errs, errors.New("install them with: npm install --prefix loadtest/peers\nor leave those systems out: --system pinwheel"))
	return errors.Join(errs...)
}

// Names that requests have.
const (
	webDomain = "load.test"
	fileName  = "page.txt"
)

func webOwner(i int) string { return fmt.Sprintf("o%0*d", len(webclient.Owner), i) }

// webHost is the host of a worker of any owner.
func webHost(worker string) string { return worker + "--o" + webclient.Owner + "." + webDomain }

// hostOf is webHost for an owner.
func hostOf(worker string, owner int) string {
	return strings.Replace(webHost(worker), webclient.Owner, webOwner(owner)[1:], 1)
}

// webParts are the workers of Pinwheel that answer.
var webParts = map[string][]part{report.WebJSON: {{worker: "web.mjs"}},
	report.WebSockets: {{worker: "socket.mjs", mode: workers.Persistent}}, report.WebCalls: {
		{worker: "calls.mjs"}}, report.WebKernels: {{worker: "kernels.mjs"}}, report.WebPipe: {{worker: "pipe.mjs"}}}

// webHandler is the file that answers, without its extension.
func webHandler(web string) string {
	if parts := webParts[web]; len(parts) > 0 {
		return parts[0].deployed()
	}
	return ""
}

// webExchange is the request of a case with its answer.
func webExchange(c report.Case) webclient.Exchange {
	const number = webclient.Number
	switch web := c.Web; web {
	case report.WebCalls:
		return webclient.Exchange{
			Request: fmt.Appendf(nil, "GET /%s/%d/%s HTTP/1.1\r\nHost: %s\r\n\r\n", c.Call, report.CallsOfRequest, number,
				webHost("calls")), Answer: []byte(number + " ok"),
		}
	case report.WebKernels:
		return webclient.Exchange{
			Request: fmt.Appendf(nil, "GET /%s/%d/%s HTTP/1.1\r\nHost: %s\r\n\r\n", c.Kernel, report.RunsOfRequest, number,
				webHost("kernels")), Answer: []byte(number + " ok"),
		}
	case report.WebPipe:
		return webclient.Exchange{Request: fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", webHost("pipe"),
			c.Bytes), Echo: c.Bytes}
	case report.WebFile:
		return webclient.Exchange{Request: []byte("GET /" + fileName + " HTTP/1.1\r\nHost: " + webHost("files") + "\r\n\r\n"),
			Answer: fileText()}
	case report.WebSockets:
		return webclient.Exchange{Request: []byte("GET / HTTP/1.1\r\nHost: " + webHost(webParts[web][0].deployed()) +
			"\r\n\r\n"), Answer: []byte("ready")}
	}
	host, body := webHost("web"), `{"id":`+number+orderTail
	return webclient.Exchange{
		Request: fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body),
		Answer:  []byte(`{"ok":true,"id":` + number + `,"user":"Ada Lovelace","items":6,"host":"` + host + `"}`),
	}
}

// fileText is the content of the file: 10 KB.
func fileText() []byte { return []byte(strings.Repeat("0123456789abcde\n", 640)) }

// openWeb starts the system of c, and returns it with the address where it answers.
func (r *runner) openWeb(ctx context.Context, c report.Case) (s *testbed, addr string, err error) {
	s = &testbed{refused: func(error) {}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp(r.stores, "run-"); err != nil {
		return s, "", err
	}
	if c.System == report.Ours {
		addr, err = r.openGateway(ctx, s, c)
	} else {
		addr, err = r.openSystem(s, c)
	}
	if err != nil {
		return s, "", err
	}
	if err := s.awaitAnswer(ctx, addr, webExchange(c)); err != nil {
		return s, "", err
	}
	s.meter = machine.NewMeter(s.system, s.servers) // with the processes that the system has started meanwhile
	return s, addr, nil
}

// openGateway starts NATS and a fleet, and deploys the workers.
func (r *runner) openGateway(ctx context.Context, s *testbed, c report.Case) (addr string, err error) {
	if s.servers, s.url, err = machine.StartServers(ctx, s.dir, 1); err != nil {
		return "", err
	}
	// peers log nothing either
	env := []string{"PINWHEEL_HTTP_ADDR=127.0.0.1:0", "PINWHEEL_HTTP_DOMAIN=" + webDomain, "PINWHEEL_HTTP_LOG=false"}
	if c.Web == report.WebSockets {
		env = append(env, fmt.Sprintf("PINWHEEL_HTTP_MAX_CONNECTIONS=%d", c.Connections+100),
			"PINWHEEL_HTTP_TRUST=127.0.0.1,::1")
	}
	s.fleet, err = startFleet(ctx, fleetOptions{
		binary: r.pinwheel, natsURL: s.url, dir: filepath.Join(s.dir, "data"), processes: c.Processes,
		env: append(env, r.o.env...),
	})
	if err != nil {
		return "", err
	}
	s.system = s.fleet.Child
	if err := s.connect(); err != nil {
		return "", err
	}
	if c.Web == report.WebFile {
		return s.fleet.http, r.deployFile(ctx, s)
	}
	n, err := r.deployer.deploy(ctx, s.url, s.js, webParts[c.Web], webOwner, c.Owners)
	if err != nil {
		return "", err
	}
	return s.fleet.http, s.fleet.awaitWorkers(ctx, n, c.Processes)
}

// deployFile deploys a worker that has a file.
func (r *runner) deployFile(ctx context.Context, s *testbed) error {
	dir := filepath.Join(r.dir, "files")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "dist"), 0o700), os.WriteFile(filepath.Join(dir, "pinwheel.json"),
		[]byte(`{"assets": {"directory": "dist"}}`), 0o600),
		os.WriteFile(filepath.Join(dir, "dist", fileName), fileText(), 0o600))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.pinwheel, "deploy", dir, "--owner", webOwner(0))
	cmd.Env = append(os.Environ(), "PINWHEEL_NATS_URL="+s.url)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pinwheel deploy: %w\n%s", err, out)
	}
	return nil
}

// openSystem starts another system.
func (r *runner) openSystem(s *testbed, c report.Case) (addr string, err error) {
	of, err := findSystem(c.Web, c.System)
	if err != nil {
		return "", err
	}
	path, err := of.binary(r.peerDir)
	if err != nil {
		return "", err
	}
	site := webSite{dir: s.dir, owners: c.Owners, handler: webHandler(c.Web)}
	if site.port, err = machine.FreePort(); err != nil {
		return "", err
	}
	switch {
	case of.name == "workerd":
		err = configureWorkerd(site)
	case c.Web == report.WebFile:
		err = os.WriteFile(filepath.Join(site.dir, fileName), fileText(), 0o600)
	}
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, of.args(site)...)
	cmd.Dir = r.peerDir
	cmd.Env = append(os.Environ(), "PORT="+site.port, "HANDLER="+site.handler, "NODE_ENV=production")
	if s.system, err = machine.StartChild(of.name, cmd, nil); err != nil {
		return "", err
	}
	return "127.0.0.1:" + site.port, nil
}

// awaitAnswer waits until the system answers a request as it must.
func (s *testbed) awaitAnswer(ctx context.Context, addr string, e webclient.Exchange) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := answers(ctx, addr, e)
		if err == nil {
			return nil
		}
		if ended := s.alive(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; it said last:\n%s", s.system.Name, err, s.system.Said())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func answers(ctx context.Context, addr string, e webclient.Exchange) error {
	c, err := webclient.Dial(ctx, addr, e)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	return ask(c, 0, 0)
}
