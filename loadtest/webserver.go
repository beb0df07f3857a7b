package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
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
			return serve(cmd.Context(), args[1], http.FileServer(http.Dir(args[0])))
		},
	}
}

// serve answers requests at a port until ctx is done.
func serve(ctx context.Context, port string, h http.Handler) error {
	debug.SetGCPercent(100) // as in a program that does not set it
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: h}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// echoServer is the command of a server that hands bodies on as any program in Go does.
const echoServer = "echo-server"

func newEchoServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: echoServer + " PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serve(cmd.Context(), args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if http.NewResponseController(w).EnableFullDuplex() == nil {
					w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
					_, _ = io.Copy(w, r.Body)
				}
			}))
		},
	}
}

// pinnedServer is the command of the system webFloor.
const pinnedServer = "pinned-server"

// newPinnedServerCommand answers workers/web.mjs' requests by what Pinwheel has, and by nothing else: net/http, and for
// each request a hand-off to a goroutine with a thread of its own, and back. Its cost is the cost without JavaScript.
func newPinnedServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: pinnedServer + " PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h := make(pinned)
			ctx, end := context.WithCancel(cmd.Context())
			var threads sync.WaitGroup
			defer func() { end(); threads.Wait() }()
			for range runtime.NumCPU() {
				threads.Go(func() { h.work(ctx) })
			}
			return serve(ctx, args[0], h)
		},
	}
}

// pinned has the requests that wait for a thread.
type pinned chan posted

// posted is a request, and where its answer goes.
type posted struct {
	body   []byte
	host   string
	answer chan []byte // takes one; nil = the body is no order
}

func (p pinned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	one := posted{body, r.Host, make(chan []byte, 1)}
	p <- one
	answer := <-one.answer
	if answer == nil {
		http.Error(w, "the body is no order", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// work answers requests as workers/web.mjs does, until ctx is done.
func (p pinned) work(ctx context.Context) {
	runtime.LockOSThread()
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-p:
			one.answer <- receiptOf(one)
		}
	}
}

func receiptOf(one posted) []byte {
	var order struct {
		ID    int64
		User  struct{ Name string }
		Items []json.RawMessage
	}
	if json.Unmarshal(one.body, &order) != nil {
		return nil
	}
	answer, _ := json.Marshal(struct {
		OK    bool   `json:"ok"`
		ID    int64  `json:"id"`
		User  string `json:"user"`
		Items int    `json:"items"`
		Host  string `json:"host"`
	}{true, order.ID, order.User.Name, len(order.Items), one.host})
	return answer
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
	code, err := workerFiles.ReadFile("workers/" + s.handler + ".mjs")
	if err != nil {
		return err
	}
	// what the router reads of the host
	service := func(owner int) string { return strings.TrimSuffix(hostOf(s.handler, owner), "."+webDomain) }
	const date = `compatibilityDate = "2026-11-01"`
	var services, bindings strings.Builder
	for i := range s.owners {
		name := service(i)
		// Each owner's code is another text, so that nothing of it is shared.
		if err := os.WriteFile(filepath.Join(s.dir, name+".mjs"), fmt.Appendf(nil, "// %s\n%s", name, code),
			0o600); err != nil {
			return err
		}
		fmt.Fprintf(&services, "  (name = %q, worker = (modules = [(name = \"worker\", esModule = embed %q)], %s)),\n", name, name+".mjs", date)
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
