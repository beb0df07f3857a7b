package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/spf13/cobra"
)

// newFloorCommand is a consumer that does the minimum: it answers and acks, and reads no body. Its cost is the cost
// without JavaScript. With --confirm the server confirms each ack, and nothing waits for that.
func newFloorCommand() *cobra.Command {
	confirm := false
	c := &cobra.Command{
		Use: "floor", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var confirmTo string
			return consume(cmd.Context(), func(nc *nats.Conn, m jetstream.Msg) error {
				id, err := strconv.Atoi(m.Headers().Get(events.HeaderEventID)[1:])
				if err != nil {
					return err
				}
				if err := nc.Publish(m.Headers().Get(events.HeaderReplyTo), receipt(nil, id)); err != nil {
					return err
				}
				if !confirm {
					return m.Ack()
				}
				if confirmTo == "" {
					confirmTo = nc.NewInbox()
					if _, err := nc.Subscribe(confirmTo, func(*nats.Msg) {}); err != nil {
						return err
					}
				}
				return nc.PublishRequest(m.Reply(), confirmTo, []byte("+ACK"))
			})
		},
	}
	c.Flags().BoolVar(&confirm, "confirm", false, "the server confirms each ack")
	return c
}

// consume passes the events that NATS_URL, STREAM and CONSUMER name to handle, one after the other, until ctx is done.
func consume(ctx context.Context, handle func(*nats.Conn, jetstream.Msg) error) error {
	nc, err := nats.Connect(os.Getenv("NATS_URL"), machine.Patient)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	cons, err := js.Consumer(ctx, os.Getenv("STREAM"), os.Getenv("CONSUMER"))
	if err != nil {
		return err
	}
	// The heartbeats are short, because nats.go 1.55 sometimes forgets to request more messages, and heartbeats detect
	// that.
	running, err := cons.Consume(func(m jetstream.Msg) {
		if err := handle(nc, m); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, jetstream.PullMaxMessages(1000), jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(500*time.Millisecond))
	if err != nil {
		return err
	}
	<-ctx.Done()
	running.Stop()
	return nil
}
