package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
)

func ExampleParseManifest() {
	spec, err := deploy.ParseManifest("hello.pinwheel.json", []byte(`{"mode": "shared", "vars": {"GREETING": "hello"}}`))
	fmt.Println(spec.Mode, spec.Vars["GREETING"], err)
	_, err = deploy.ParseManifest("hello.pinwheel.json", []byte("{\n  \"limits\": {\"heapMB\": 4}\n}"))
	fmt.Println(err)
	// Output:
	// shared hello <nil>
	// hello.pinwheel.json:2:14: limits.heapMB is 4: it is 8 to 512
	//       "limits": {"heapMB": 4}
	//                  ^
}

func ExampleBuild() {
	bundle, err := deploy.Build(context.Background(), "testdata/hello.ts")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bundle.File, bundle.Mode, len(bundle.Inputs), "files")

	_, err = deploy.Build(context.Background(), "testdata/syntax.js")
	var source *deploy.SourceError
	if errors.As(err, &source) {
		d := source.Diagnostics[0]
		fmt.Printf("%s:%d:%d: %s\n", d.File, d.Line, d.Column, d.Text)
	}
	// Output:
	// hello.js pinned 3 files
	// testdata/syntax.js:2:36: Expected ")" but found "oops"
}

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
	d, err := store.Deploy(ctx, deploy.Request{Owner: "acme", Path: "testdata/hello.ts"}, isFine)
	fail(err)
	fmt.Println(d.Worker.Target(), d.Worker.Number, d.Stored)
	fmt.Println("installed", <-installed)

	d, err = store.Deploy(ctx, deploy.Request{Owner: "acme", Path: "testdata/hello.ts"}, isFine)
	fmt.Println("again:", d.Stored, err)
	// Output:
	// acme/hello 1 true
	// installed acme/hello
	// again: false <nil>
}

// printer is an Installer that sends what it gets.
type printer chan string

func (p printer) Install(in events.Installation) { p <- in.Target() }

func (p printer) Remove(string, string) {}
