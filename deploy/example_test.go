package deploy_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
)

// One process deploys a worker, and each process that watches installs it.
func ExampleStore_Deploy() {
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "pinwheel")
	fail(err)
	defer os.RemoveAll(dir)
	server, err := natsd.Open(natsd.Config{StoreDir: dir, Port: -1})
	fail(err)
	defer server.Close()
	nc, err := nats.Connect(server.URL())
	fail(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	fail(err)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := deploy.Open(ctx, js, deploy.Config{})
	fail(err)
	installed := make(printer, 10)
	go func() { _ = store.Watcher(installed).Run(ctx) }()

	// In a fleet, the checker loads the module in a V8 isolate.
	d, err := store.Deploy(ctx, deploy.Request{Owner: "acme", Path: "bundle/testdata/hello.ts"}, isFine)
	fail(err)
	fmt.Println(d.Worker.Target(), d.Worker.Number, d.Stored)
	fmt.Println("installed", <-installed)

	d, err = store.Deploy(ctx, deploy.Request{Owner: "acme", Path: "bundle/testdata/hello.ts"}, isFine)
	fmt.Println("again:", d.Stored, err)
	// Output:
	// acme/hello 1 true
	// installed acme/hello
	// again: false <nil>
}

// printer is an Installer that sends what it gets.
type printer chan string

func (p printer) Install(in workers.Installation) { p <- in.Target() }

func (p printer) Remove(string, string) {}
