package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// fileServer is the command that serves files as any program in Go does.
const fileServer = "file-server"

// newFileServerCommand is Go's own file server, as a child of this program.
func newFileServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: fileServer + " DIR PORT", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			debug.SetGCPercent(100) // as in a program that does not set it
			l, err := net.Listen("tcp", "127.0.0.1:"+args[1])
			if err != nil {
				return err
			}
			s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.FileServer(http.Dir(args[0]))}
			stop := make(chan struct{})
			defer func() { <-stop }()
			go func() {
				<-cmd.Context().Done()
				_ = s.Close()
				close(stop)
			}()
			if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
}

// workerdConfig is the file with the configuration of workerd.
const workerdConfig = "config.capnp"

// workerdRouter finds the worker of an owner by the host of the request.
const workerdRouter = `export default {
  fetch(request, env) {
    const host = request.headers.get("host");
    return env[host.slice(0, host.indexOf("."))].fetch(request);
  },
};
`

// configureWorkerd writes a configuration with a worker for each owner. Several of them are behind one that chooses by
// the host. So all owners have one address, as in the other systems.
func configureWorkerd(s webSite) error {
	code, err := workerFiles.ReadFile("workers/web.mjs")
	if err != nil {
		return err
	}
	service := func(owner int) string { return strings.TrimSuffix(hostOf("web", owner), "."+webDomain) } // what the router reads of the host
	const date = `compatibilityDate = "2026-11-01"`
	var services, bindings strings.Builder
	for i := range s.owners {
		name := service(i)
		// Each owner's code is another text, so that nothing of it is shared.
		if err := os.WriteFile(filepath.Join(s.dir, name+".mjs"), fmt.Appendf(nil, "// %s\n%s", name, code), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(&services, "  (name = %q, worker = (modules = [(name = \"web\", esModule = embed %q)], %s)),\n", name, name+".mjs", date)
		fmt.Fprintf(&bindings, "    (name = %q, service = %q),\n", name, name)
	}
	first := service(0)
	if s.owners > 1 {
		first = "router"
		fmt.Fprintf(&services, "  (name = %q, worker = (modules = [(name = \"router\", esModule = embed \"router.mjs\")], %s, bindings = [\n%s  ])),\n", first, date, bindings.String())
		if err := os.WriteFile(filepath.Join(s.dir, "router.mjs"), []byte(workerdRouter), 0o600); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("using Workerd = import \"/workerd/workerd.capnp\";\n\nconst config :Workerd.Config = (\n services = [\n%s ],\n"+
		" sockets = [(name = \"http\", address = \"127.0.0.1:%s\", http = (), service = %q)],\n);\n", services.String(), s.port, first)
	return os.WriteFile(filepath.Join(s.dir, workerdConfig), []byte(text), 0o600)
}
