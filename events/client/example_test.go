package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
)

// A fetch event is stored, run, and answered.
func Example() {
	fleet, err := startFleet() // yours runs already
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	nc, err := nats.Connect(fleet.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	pinwheel, err := client.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	defer pinwheel.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	reply, err := pinwheel.Call(ctx, client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello",
		Body: []byte("Ada"), ContentType: "text/plain"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Status, string(reply.Body))
	// Output: 200 hello Ada
}

// An event that failed has a reply, and its Failure is the error.
func ExampleClient_Call_failure() {
	pinwheel, closeAll, err := startClient() // as in the first example
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	reply, err := pinwheel.Call(ctx, client.Request{Kind: events.Fetch, Owner: "acme", Worker: "hello"})
	var failure *events.Failure
	switch {
	case errors.As(err, &failure):
		fmt.Println(reply.Status, failure.Reason, failure.Message)
	case err != nil:
		log.Fatal(err)
	}
	// Output: 500 exception no name
}

// A task is stored once, however often it is published with the same ID.
func ExampleClient_Publish() {
	pinwheel, closeAll, err := startClient() // as in the first example
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for range 2 {
		ack, err := pinwheel.Publish(ctx, client.Request{Kind: events.Task, Owner: "acme", Worker: "report",
			ID: "report-2026-01", Body: []byte(`{}`)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("stored as", ack.Seq, "duplicate:", ack.Duplicate)
	}
	// Output:
	// stored as 1 duplicate: false
	// stored as 1 duplicate: true
}
