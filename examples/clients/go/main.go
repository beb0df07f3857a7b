// The Go example: it calls a worker and prints its reply.
//
//	go run ./examples/clients/go [owner/worker] [name]
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
)

const timeout = 10 * time.Second

func main() {
	target, name := "dev/hello", "Ada"
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	if len(os.Args) > 2 {
		name = os.Args[2]
	}
	url := os.Getenv("NATS_URL")
	if url == "" {
		url = nats.DefaultURL
	}
	if err := run(context.Background(), url, target, name, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, target, name string, stdout, stderr io.Writer) error {
	owner, worker, err := events.ParseTarget(target)
	if err != nil {
		return err
	}
	// The inboxes belong to the owner. With users of NATS it may read no others.
	nc, err := nats.Connect(url, nats.CustomInboxPrefix("_INBOX."+owner))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", url, err)
	}
	defer nc.Close()
	c, err := client.New(nc) // one client for all calls of a program
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()

	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		return err
	}
	// After the deadline no one waits for the reply. So an event that has not started by then does not run.
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := c.Call(ctx, client.Request{
		Kind: events.Fetch, Owner: owner, Worker: worker,
		Method: http.MethodPost, URL: "/greetings?lang=en", Body: body, ContentType: "application/json",
		// With your own ID you can match a reply with a line in the worker's log.
		ID: rand.Text(),
	})
	if err != nil {
		return err // a failure of the worker is an *events.Failure
	}
	fmt.Fprintf(stderr, "status %d after %s\n", reply.Status, reply.Duration)
	fmt.Fprintln(stdout, string(reply.Body))
	return nil
}
