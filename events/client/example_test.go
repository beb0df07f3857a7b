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

func Example() {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	pinwheel, err := client.New(nc)
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	reply, err := pinwheel.Call(ctx, client.Request{
		Kind: events.Fetch, Owner: "dev", Worker: "hello", Body: []byte(`{"name":"Ada"}`), ContentType: "application/json",
	})
	var failure *events.Failure
	switch {
	case errors.As(err, &failure):
		log.Fatalf("the handler failed (%s), HTTP status %d", failure.Reason, reply.Status)
	case err != nil:
		log.Fatal(err)
	}
	fmt.Println(reply.Status, string(reply.Body))

	ack, err := pinwheel.Publish(ctx, client.Request{Kind: events.Task, Owner: "dev", Worker: "report", ID: "report-2026-01"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored as", ack.Seq, "new:", !ack.Duplicate)
}
